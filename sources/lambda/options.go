package lambda

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice/flow"
)

// Options configure a handler; the zero value is ready to use.
type Options struct {
	Concurrency int        // handlers running at once in one invocation (default 64)
	Order       flow.Order // default flow.ByItem

	// DeadLetter stores records that failed for good. nil: they stop the batch.
	DeadLetter flow.DeadLetter
	// ParkItem parks later changes of a parked item behind it, in order:
	// changes of the same invocation. Changes of later invocations need a
	// DeadLetter with the method Holds; see [flow.DeadLetter].
	ParkItem bool
	MaxAge   time.Duration // a failing record older than this is parked (default: never)

	// Margin is the time before an invocation's deadline in which nothing
	// starts. The default is 1 s or 10 % of the given time, whichever is
	// larger; never more than half of it.
	Margin time.Duration

	// StuckWait is how long an invocation waits for a handler that still runs
	// from an earlier one, before it fails and the process exits (default 5 s;
	// never more than half of the given time).
	StuckWait  time.Duration
	StuckAfter time.Duration // a handler that runs longer is reported (default 1 min)

	// SIGTERM, if set, is called when the service shuts the process down;
	// SIGKILL follows about 500 ms later. It makes Start register an internal
	// extension, because the service sends no SIGTERM without one.
	SIGTERM func()

	// Invoked, if set, is called at the end of each invocation, before its
	// response is returned. It must be fast, and safe for concurrent use if
	// invocations are concurrent. The service's own Errors metric does not count
	// partial failures; Invoked sees them.
	Invoked   func(Invocation)
	FlowHooks flow.Hooks   // of each invocation's flow
	Logger    *slog.Logger // default slog.Default()
}

// Invocation is the result of one invocation.
type Invocation struct {
	RequestID string
	Deadline  time.Time // zero: none
	Cold      bool      // the first of this process
	Pipe      bool      // a bare array of records, from a pipe
	Queue     bool      // messages of a queue
	Records   int
	Settled   int           // consecutive durable records from the first; of messages, all durable ones
	Failed    int           // failures that stopped the batch
	Parked    int           // records in the dead letters
	From      string        // first itemIdentifier of the response; empty when all are settled or Err fails the batch
	Took      time.Duration // without the service's overhead
	Stopped   error         // why Settled is less than Records
	Err       error         // returned to the service: the whole batch has failed
}

func (o Options) withDefaults() Options {
	o.StuckWait = cmp.Or(o.StuckWait, 5*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

func (o Options) validate() error {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"Concurrency", int64(o.Concurrency)},
		{"MaxAge", int64(o.MaxAge)},
		{"Margin", int64(o.Margin)},
		{"StuckWait", int64(o.StuckWait)},
		{"StuckAfter", int64(o.StuckAfter)},
	} {
		if f.value < 0 {
			return fmt.Errorf("lambda: Options.%s is %d: it must not be negative", f.name, f.value)
		}
	}
	if o.MaxAge > 0 && o.DeadLetter == nil {
		return fmt.Errorf("lambda: Options.MaxAge is %v but there is no DeadLetter to park old records in: set both or neither", o.MaxAge)
	}
	return nil
}
