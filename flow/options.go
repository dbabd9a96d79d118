package flow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice"
)

// Policy says what a flow does with a record that fails for good.
type Policy uint8

const (
	// Park hands it to the dead letters and goes on: the daemon's.
	Park Policy = iota
	// Stop starts no later record and lets what runs finish: Lambda's. Nothing
	// is retried but by the next invocation; a Permanent failure is parked
	// when there is a DeadLetter and else stops.
	Stop
)

// Order is the unit within which records run one after another.
type Order uint8

const (
	ByItem  Order = iota // records of one item
	ByShard              // all records of the flow
)

// DeadLetter makes a failed record durable elsewhere. The record is settled
// when Park returned nil; an error is retried. Park is called concurrently for
// different items, and again for a record whose Park was cut off.
type DeadLetter interface {
	Park(ctx context.Context, rec *sluice.Record, f sluice.Failure) error
}

// Holder is a DeadLetter that knows the items that it holds. A flow with
// ParkItem asks it before a record's first call for a route, so that changes
// behind a parked one are parked too after a restart, and go on once it was
// redriven.
type Holder interface {
	// Holds reports whether an earlier change of rec's item is parked for
	// route. An entry parked with an empty route holds every route. An
	// error is retried like one of Park. It is called for every record and
	// route and should answer from memory.
	Holds(ctx context.Context, rec *sluice.Record, route string) (bool, error)
}

// namer is a DeadLetter whose entries have ids. The log has that of a parked
// record: one of a backfill has no position to be found by.
type namer interface {
	// ID is that of the entry in which Park keeps rec for route.
	ID(rec *sluice.Record, route string) string
}

// Options configure a Flow; the zero value is ready to use.
type Options struct {
	Concurrency int              // handlers running at once (default 64); one that waits in a sink does not count
	Window      int              // unsettled records at most (default 4096)
	WindowBytes int64            // unsettled bytes of records at most (default 64 MiB); one record always fits; for what pages keep besides see Page
	HeldBytes   int64            // bytes of records that failed, or wait behind one that did, before no more are taken (default 64 MiB); they count apart from the window
	MaxAhead    int              // records settled past the watermark at most (default 1,000,000: 15 minutes of 1,000 a second, and some)
	Order       Order            // default ByItem
	Policy      Policy           // default Park
	DeadLetter  DeadLetter       // nil: under Park a failed record holds its lane for good
	ParkItem    bool             // later changes of a parked item are parked behind it, in order
	MaxAge      time.Duration    // of a failing record whose route sets none (default 20 h under Park, none under Stop)
	Margin      time.Duration    // under Stop: start nothing later than this before ctx's deadline (default the larger of 1 s and 10 %, at most half)
	Clock       func() time.Time // by which records were created and the stream forgets them (default time.Now): this machine's may be wrong
	StuckAfter  time.Duration    // a handler running longer is reported (default 1 min)
	Group       *Group           // state of the routes shared between flows (default: the flow's own)
	Hooks       Hooks
	Logger      *slog.Logger // default slog.Default()
}

// Result is how one route ended with a record.
type Result uint8

const (
	Done     Result = iota // nil
	Skipped                // sluice.Skip
	Retried                // failed; will be called again
	Parked                 // failed for good; in the dead letters
	Stopped                // failed under Stop, or for good with no dead letter to take it
	Unrouted               // no route; Route is nil
)

// String returns the result's name in lower case, as a metric's label.
func (r Result) String() string {
	switch r {
	case Done:
		return "done"
	case Skipped:
		return "skipped"
	case Retried:
		return "retried"
	case Parked:
		return "parked"
	case Stopped:
		return "stopped"
	case Unrouted:
		return "unrouted"
	}
	return "unknown"
}

// Hooks are called as things happen, from the goroutine that made them happen;
// nil ones are passed over. They must be fast and must not block nor panic.
type Hooks struct {
	// Handled is called after each call of a route's handler; for a record
	// that failed for good once it is parked. route is nil for Unrouted and
	// for records that could not be decoded or matched.
	Handled func(rec *sluice.Record, route *sluice.Route, r Result, took time.Duration, err error)
	// ParkFailed is called when the dead letters refused a record; route is
	// nil as above. The flow tries again, or stops as its Policy says.
	ParkFailed func(rec *sluice.Record, route *sluice.Route, err error)
	// Stuck is called when a handler has been running for too long, and again
	// with returned set when it comes back. A call of the dead letters is
	// watched in the same way.
	Stuck func(rec *sluice.Record, route *sluice.Route, since time.Duration, returned bool)
}

const (
	defaultConcurrency = 64
	defaultWindow      = 4096
	defaultWindowBytes = 64 << 20
	defaultHeldBytes   = 64 << 20
	defaultMaxAhead    = 1_000_000
	defaultStuckAfter  = time.Minute
)

func (o Options) withDefaults() Options {
	if o.Concurrency == 0 {
		o.Concurrency = defaultConcurrency
	}
	if o.Window == 0 {
		o.Window = defaultWindow
	}
	if o.WindowBytes == 0 {
		o.WindowBytes = defaultWindowBytes
	}
	if o.HeldBytes == 0 {
		o.HeldBytes = defaultHeldBytes
	}
	if o.MaxAhead == 0 {
		o.MaxAhead = defaultMaxAhead
	}
	if o.MaxAge == 0 && o.Policy == Park {
		o.MaxAge = defaultMaxAge
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.StuckAfter == 0 {
		o.StuckAfter = defaultStuckAfter
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// Validate reports every field whose value is not allowed.
func (o Options) Validate() error {
	var errs []error
	atLeastZero := func(field string, n int64, v any) {
		if n < 0 {
			errs = append(errs, fmt.Errorf("flow: Options.%s is %v: must be 0 (the default) or more", field, v))
		}
	}
	atLeastZero("Concurrency", int64(o.Concurrency), o.Concurrency)
	atLeastZero("Window", int64(o.Window), o.Window)
	atLeastZero("WindowBytes", o.WindowBytes, o.WindowBytes)
	atLeastZero("HeldBytes", o.HeldBytes, o.HeldBytes)
	atLeastZero("MaxAhead", int64(o.MaxAhead), o.MaxAhead)
	atLeastZero("MaxAge", int64(o.MaxAge), o.MaxAge)
	atLeastZero("Margin", int64(o.Margin), o.Margin)
	atLeastZero("StuckAfter", int64(o.StuckAfter), o.StuckAfter)
	if o.StuckAfter > 0 && o.StuckAfter < time.Millisecond {
		errs = append(errs, fmt.Errorf("flow: Options.StuckAfter is %v: must be 0 (the default) or 1 ms at least", o.StuckAfter))
	}
	if o.Order > ByShard {
		errs = append(errs, fmt.Errorf("flow: Options.Order is %d: must be ByItem or ByShard", o.Order))
	}
	if o.Policy > Stop {
		errs = append(errs, fmt.Errorf("flow: Options.Policy is %d: must be Park or Stop", o.Policy))
	}
	return errors.Join(errs...)
}
