package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice"
)

// Policy says how a flow handles a record that fails for good.
type Policy uint8

const (
	// Park sends the record to the dead letters and continues. The daemon uses
	// it.
	Park Policy = iota
	// Stop starts no later record and lets running handlers finish. Lambda uses
	// it. The next invocation retries. A Permanent failure is parked if there
	// is a DeadLetter, and stops the flow otherwise.
	Stop
)

// Order is the unit within which records run one after another.
type Order uint8

const (
	ByItem  Order = iota // records of one item
	ByShard              // all records of the flow
)

// DeadLetter stores a failed record durably. The record is settled when Park
// returns nil; an error is retried. Park runs concurrently for different items. It
// may run again for a record after a Park that was cut off.
//
// A DeadLetter may know which items have parked changes. It then has a method
//
//	Holds(ctx context.Context, rec *sluice.Record, route string) (bool, error)
//
// that reports whether an earlier change of rec's item is parked for route. A
// letter with an empty route holds every route. A flow with ParkItem calls Holds
// before a record's first call of a route. So later changes are parked behind a
// parked change even after a restart, and run again after its redrive. An error is
// retried like an error of Park. Holds runs for every record and route, so answer
// from memory.
type DeadLetter interface {
	Park(ctx context.Context, rec *sluice.Record, f sluice.Failure) error
}

// holder is a DeadLetter that knows which items have parked changes.
type holder interface {
	Holds(ctx context.Context, rec *sluice.Record, route string) (bool, error)
}

// namer is a DeadLetter whose letters have ids, for the log. A backfill record has
// no position to find it by.
type namer interface {
	// ID returns the id of the letter of rec for route.
	ID(rec *sluice.Record, route string) string
}

// Options configure a Flow; the zero value is ready to use.
type Options struct {
	Concurrency int              // handlers running at once (default 64); a handler that waits in a sink does not count
	Window      int              // unsettled records at most (default 4096)
	WindowBytes int64            // unsettled bytes of records at most (default 64 MiB); one record always fits; for the memory of pages see Page
	HeldBytes   int64            // bytes of failed records and of those behind them, above which Submit waits (default 64 MiB); not part of the window
	MaxAhead    int              // records settled past the watermark at most (default 1,000,000: more than 15 minutes at 1,000 records a second)
	Order       Order            // default ByItem
	Policy      Policy           // default Park
	DeadLetter  DeadLetter       // nil: under Park a failed record holds its lane for good
	ParkItem    bool             // later changes of a parked item are parked behind it, in order
	MaxAge      time.Duration    // of a failing record, unless its route sets MaxAge (default 20 h under Park, none under Stop)
	Margin      time.Duration    // under Stop: start nothing later than this before ctx's deadline (default the larger of 1 s and 10 %, at most half)
	Clock       func() time.Time // time of the source, for the age of records (default time.Now): the machine's clock may be wrong
	StuckAfter  time.Duration    // a handler that runs longer is reported (default 1 min)
	// Admit, if set, is called before each call of a handler. It waits until the
	// call may be made, or returns the error of the context, which ends with the flow.
	Admit  func(context.Context) error
	Group  *Group // state of the routes, shared between flows (default: the flow's own)
	Hooks  Hooks
	Logger *slog.Logger // default slog.Default()
}

// Result is the end of one call of a route for a record.
type Result uint8

const (
	Done     Result = iota // nil
	Skipped                // sluice.Skip
	Retried                // failed; will be retried
	Parked                 // failed for good; in the dead letters
	Stopped                // failed under Stop, or for good without dead letters
	Unrouted               // no route; Route is nil
)

var resultNames = [...]string{"done", "skipped", "retried", "parked", "stopped", "unrouted"}

// String returns the result's name in lower case, as a metric's label.
func (r Result) String() string {
	if int(r) < len(resultNames) {
		return resultNames[r]
	}
	return "unknown"
}

// Hooks observe a flow. They run on the goroutine of the event and may be nil.
// They must be fast, and must not block or panic.
type Hooks struct {
	// Handled runs after each call of a route's handler. For a record that
	// failed for good, it runs once the record is parked. route is nil for
	// Unrouted, and for records that could not be decoded or matched. ctx is that of
	// the handler, or of the parking: it leads to the span of a Tracer.
	Handled func(ctx context.Context, rec *sluice.Record, route *sluice.Route, r Result, took time.Duration, err error)
	// ParkFailed runs when the dead letters refused a record; route is nil as
	// above. The flow retries or stops, by its Policy.
	ParkFailed func(rec *sluice.Record, route *sluice.Route, err error)
	// Stuck runs when a handler runs for longer than StuckAfter, and again with
	// returned set when the handler returns. It also watches calls of the dead
	// letters.
	Stuck func(rec *sluice.Record, route *sluice.Route, since time.Duration, returned bool)
	// Tracer follows each record from its Submit to its end. Package tracing has one.
	Tracer Tracer
}

// timed reports whether a hook wants the duration of calls.
func (h *Hooks) timed() bool { return h.Handled != nil || h.Tracer != nil }

const (
	defaultConcurrency = 64
	defaultWindow      = 4096
	defaultWindowBytes = 64 << 20
	defaultHeldBytes   = 64 << 20
	defaultMaxAhead    = 1_000_000
	defaultStuckAfter  = time.Minute
)

func (o Options) withDefaults() Options {
	o.Concurrency = cmp.Or(o.Concurrency, defaultConcurrency)
	o.Window = cmp.Or(o.Window, defaultWindow)
	o.WindowBytes = cmp.Or(o.WindowBytes, defaultWindowBytes)
	o.HeldBytes = cmp.Or(o.HeldBytes, defaultHeldBytes)
	o.MaxAhead = cmp.Or(o.MaxAhead, defaultMaxAhead)
	if o.MaxAge == 0 && o.Policy == Park {
		o.MaxAge = defaultMaxAge
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.StuckAfter = cmp.Or(o.StuckAfter, defaultStuckAfter)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// Validate reports every invalid field.
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
