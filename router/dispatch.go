package router

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/outcomes"
)

// Dispatch runs every route of rec, one after another in order of registration. It
// returns nil when all succeeded. The outcome of a single route is returned as it
// is. Otherwise the result is a [*sluice.Remaining] whose Rest repeats only failed
// routes. Permanent failures are not repeated; if nothing else remains, their
// errors are the outcome. Dispatch is a [sluice.Handler].
//
// A panic is the error of its route. Dispatch applies no
// attempts, backoff, timeout or limits: a flow does.
func (r *Router) Dispatch(ctx context.Context, rec *sluice.Record) error {
	var buf [8]*sluice.Route
	routes, err := r.Match(buf[:0], rec)
	switch {
	case err != nil:
		return err
	case len(routes) == 0:
		return nil
	case len(routes) == 1:
		return call(ctx, routes[0].Handler, rec)
	}
	todo := make([]step, len(routes))
	for i, rt := range routes {
		todo[i] = step{rt.Name, rt.Handler}
	}
	return round(ctx, rec, todo, outcome{})
}

// step is the remaining call of one route.
type step struct {
	route string
	h     sluice.Handler
}

// outcome is the joint result of steps that will not run again.
type outcome struct {
	done    bool  // at least one returned nil
	skipped error // the first Skip
	failed  error // all permanent failures
}

func (o outcome) err() error {
	switch {
	case o.failed != nil:
		return o.failed
	case o.done:
		return nil
	}
	return o.skipped
}

// round calls each step once. It takes o by value, so that a Rest may run any
// number of times.
func round(ctx context.Context, rec *sluice.Record, todo []step, o outcome) error {
	var (
		rest  []step
		errs  []error
		after time.Duration
	)
	for _, s := range todo {
		err := call(ctx, s.h, rec)
		switch {
		case err == nil:
			o.done = true
			continue
		case sluice.IsPermanent(err):
			o.failed = errors.Join(o.failed, fmt.Errorf("route %q: %w", s.route, err))
			continue
		case sluice.IsSkip(err):
			if o.skipped == nil {
				o.skipped = err
			}
			continue
		}
		if part, ok := errors.AsType[*sluice.Remaining](err); ok {
			after = max(after, part.After)
			if part.Rest != nil {
				s.h = part.Rest
			}
		}
		if retry, ok := errors.AsType[*outcomes.Retry](err); ok {
			after = max(after, retry.After)
		}
		rest = append(rest, s)
		errs = append(errs, fmt.Errorf("route %q: %w", s.route, err))
	}
	if rest == nil {
		return o.err()
	}
	return &sluice.Remaining{
		Rest:  func(ctx context.Context, rec *sluice.Record) error { return round(ctx, rec, rest, o) },
		After: after,
		Err:   errors.Join(errs...),
	}
}

func call(ctx context.Context, h sluice.Handler, rec *sluice.Record) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &outcomes.Panic{Value: v, Stack: debug.Stack()}
		}
	}()
	return h(ctx, rec)
}
