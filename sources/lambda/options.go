package lambda

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice/flow"
)

// Options configure a Handler; the zero value is ready to use.
type Options struct {
	Concurrency int        // handlers running at once in one invocation (default 64)
	Order       flow.Order // default flow.ByItem

	// DeadLetter takes records that failed for good. nil: they stop the batch.
	DeadLetter flow.DeadLetter
	// ParkItem parks later changes of a parked item behind it, in order: those of
	// the same invocation, and those of later ones only when DeadLetter is a
	// [flow.Holder], which knows what it holds.
	ParkItem bool
	MaxAge   time.Duration // a failing record older than this is parked (default: never)

	// Margin before an invocation's deadline nothing is started any more. The
	// default is 1 s or 10 % of the time given, whichever is larger; never more
	// than half of the time given.
	Margin time.Duration

	// StuckWait is how long an invocation waits for a handler that an earlier
	// one left running, before it fails and the process exits (default 5 s;
	// never more than half of the time given).
	StuckWait  time.Duration
	StuckAfter time.Duration // a handler running longer is reported (default 1 min)

	// SIGTERM, when set, is called as the service shuts the process down;
	// SIGKILL follows about 500 ms later. It makes Start register an internal
	// extension, without which the service sends no SIGTERM.
	SIGTERM func()

	Hooks     Hooks
	FlowHooks flow.Hooks   // of each invocation's flow
	Logger    *slog.Logger // default slog.Default()
}

// Hooks are called as things happen; nil ones are passed over. They must be
// fast, and safe for concurrent use where invocations are concurrent.
type Hooks struct {
	// Invoked is called at the end of each invocation, before its answer is
	// returned. The service's own Errors metric does not count an invocation
	// that answered with a partial failure; this does.
	Invoked func(Invocation)
}

// Invocation tells how one invocation went.
type Invocation struct {
	RequestID string
	Cold      bool // the first of this process
	Pipe      bool // a bare array of records, as pipes send it
	Queue     bool // messages of a queue
	Records   int
	Settled   int           // records in a row, from the first, that are durable; of messages, all that are
	Failed    int           // records whose failure stopped the batch
	Parked    int           // records handed to the dead letters
	From      string        // first itemIdentifier of the answer; empty when all are settled or Err fails the batch
	Took      time.Duration // without the service's share
	Stopped   error         // why Settled is less than Records
	Err       error         // returned to the service: the whole batch has failed
}

func (o Options) withDefaults() Options {
	if o.StuckWait == 0 {
		o.StuckWait = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
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
