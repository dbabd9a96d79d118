package flow

import (
	"context"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/quorum"
)

// Tracer follows records through flows; see Hooks.Tracer. Its methods, and those of
// its traces, must be fast and must not block, panic or call the flow. A Tracer and a
// PageTrace are safe for concurrent use.
type Tracer interface {
	// Page begins the trace of the records of one Submit, whose context is ctx.
	Page(ctx context.Context, records []sluice.Record) PageTrace
	// Commit begins a commit of several items to a sink. callers has the context of
	// each item's handler, or nil. sink is its name in metrics. The returned context
	// is for the commit; end takes its result: an error for each item, or nil.
	Commit(ctx context.Context, sink string, callers []context.Context) (_ context.Context, end func(errs []error))
}

// PageTrace follows the records of one Submit.
type PageTrace interface {
	// Submitted ends the Submit.
	Submitted()
	// Record begins the trace of a record. It runs before the first call for it.
	Record(submitted time.Time) RecordTrace
}

// RecordTrace follows one record. No two of its methods run at once.
type RecordTrace interface {
	// Call begins a call of a route's handler, which gets the returned context.
	// attempt counts the calls of the route for this record, from 1.
	Call(ctx context.Context, rec *sluice.Record, route *sluice.Route, began time.Time, attempt int) context.Context
	// Park begins the parking of rec. letter is the id of its dead letter; it is
	// empty if the dead letters have none.
	Park(ctx context.Context, rec *sluice.Record, route, letter string) context.Context
	// EndCall ends the last Call, which took so long, or Park. Without one, rec has
	// failed for another reason: it could not be decoded or matched.
	EndCall(rec *sluice.Record, r Result, took time.Duration, err error)
	// End ends the trace. A record that is not settled comes again.
	End(settled bool)
}

var _ quorum.Tracer = Tracer(nil) // batches ask for it by that

// traced returns the trace of w's record, or nil.
func (w *worker) traced() RecordTrace {
	e := w.e
	if e.trace == nil && e.page.trace != nil {
		e.trace = e.page.trace.Record(e.at)
	}
	return e.trace
}

// attempt counts the calls for w's record and route, with the one that begins.
func (w *worker) attempt() int {
	if w.t == nil {
		return 1
	}
	return w.t.failure.Attempts + 1
}

// endTrace ends what w's trace last began.
func (w *worker) endTrace(r Result, took time.Duration, err error) {
	if t := w.traced(); t != nil {
		t.EndCall(w.e.rec, r, took, err)
	}
}

// context returns the context of w's last call, which leads to its span.
func (w *worker) context() context.Context {
	if w.called != nil {
		return w.called
	}
	return w.ctx
}
