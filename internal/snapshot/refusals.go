package snapshot

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
)

// refusals end a backfill if a route refuses every item. A handler that does not
// support SNAPSHOT records, or a target that takes none, would leave a dead letter
// for every item of the table.
type refusals struct {
	limit int
	stop  context.CancelCauseFunc

	mu     sync.Mutex
	routes map[string]int // records parked before any other outcome; -1: there was another
	why    error
}

// watch wraps h and counts its outcomes.
func (r *refusals) watch(h func(context.Context, *sluice.Record, *sluice.Route, flow.Result, time.Duration, error)) func(context.Context, *sluice.Record, *sluice.Route, flow.Result, time.Duration, error) {
	return func(ctx context.Context, rec *sluice.Record, route *sluice.Route, result flow.Result, took time.Duration, err error) {
		if h != nil {
			h(ctx, rec, route, result, took, err)
		}
		if result == flow.Done || result == flow.Skipped || result == flow.Parked {
			r.count(route, result == flow.Parked, err)
		}
	}
}

func (r *refusals) count(route *sluice.Route, parked bool, err error) {
	name := ""
	if route != nil {
		name = route.Name
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.routes[name]
	if n < 0 || r.why != nil {
		return
	}
	if !parked {
		r.routes[name] = -1
		return
	}
	if r.routes[name] = n + 1; n+1 < r.limit {
		return
	}
	what := fmt.Sprintf("on route %q", name)
	if route == nil {
		what = "before any route"
	}
	r.why = fmt.Errorf("snapshot: the first %d records failed for good %s and none succeeded; they are dead letters, and the rest is left: %w", r.limit, what, err)
	r.stop(r.why)
}

// err returns why the backfill was ended, or nil.
func (r *refusals) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}
