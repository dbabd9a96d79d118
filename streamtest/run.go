package streamtest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/outcomes"
	"github.com/sluicehq/sluice/internal/routed"
)

// Run runs records through the handlers of m, usually a router, in a real flow,
// and returns the outcome of each. It needs no source and no waiting.
//
// Records run one after another in the given order. A failure is retried before
// the next record begins. So handlers act in the same order in every run. Run
// skips the waits of the daemon: backoff, the delay of [sluice.RetryAfter] and a
// route's Rate. Instead of checking whether a route works for other records, Run
// counts: a record that fails as many times as its route has Attempts (8 by
// default) is parked as poison. A permanent failure is parked at once. So is any
// failure of a record older than its route's MaxAge (20 hours by default).
// Timeouts are real.
//
// Run overwrites the memory of a settled record. That exposes a handler that keeps
// part of an image without [sluice.Record.Clone]. recs themselves do not change.
//
// When ctx ends, so does Run.
func Run(ctx context.Context, m sluice.Matcher, recs ...sluice.Record) *Result {
	return RunWith(ctx, flow.Options{}, m, recs...)
}

// RunWith is Run with options of the flow. With a Concurrency, items run
// concurrently as in production: for the race detector, and for sinks whose
// callers share requests. With the policy [flow.Stop] nothing is retried and the
// first failure ends the run, as under Lambda.
//
// Without a DeadLetter, parked records appear only in the Result. A failing
// DeadLetter is retried as in production, with real delays. Group is not used.
// Without a Logger nothing is logged.
func RunWith(ctx context.Context, o flow.Options, m sluice.Matcher, recs ...sluice.Record) *Result {
	r := &runner{inner: m, stop: o.Policy == flow.Stop, hook: o.Hooks.Handled, tracks: map[identity][]*track{}}
	for _, inner := range m.Routes() {
		rt := *inner // no flow has used it, and the copy is the run's own
		rt.Handler = r.handler(inner, inner.Handler)
		rt.Backoff, rt.MaxBackoff = time.Nanosecond, time.Nanosecond
		rt.Rate, rt.Burst = 0, 0
		r.routes = append(r.routes, &rt)
	}
	if o.Concurrency == 0 {
		o.Concurrency, o.Order = 1, flow.ByShard
	}
	if o.DeadLetter == nil && !r.stop {
		o.DeadLetter = noted{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	o.Group, o.Hooks.Handled = nil, r.handled

	page := make([]sluice.Record, len(recs))
	for i := range recs {
		page[i] = *recs[i].Clone()
		r.add(&page[i], &recs[i])
	}
	f := flow.Open(ctx, r, o)
	_, failed := f.Submit(ctx, page...)
	settled, err := f.Close(ctx)
	if err == nil {
		err = failed
	}
	return r.result(int(settled), err)
}

// noted is the dead letters of a run without any.
type noted struct{}

func (noted) Park(context.Context, *sluice.Record, sluice.Failure) error { return nil }

// runner is between a flow and a Matcher.
type runner struct {
	inner  sluice.Matcher
	stop   bool
	routes []*sluice.Route
	hook   func(context.Context, *sluice.Record, *sluice.Route, flow.Result, time.Duration, error)

	mu     sync.Mutex
	tracks map[identity][]*track // equal ones in the order in which they run
	order  []*track
}

// identity identifies a record that the flow may copy. Records with one identity
// have the same item, and run one after another.
type identity struct {
	stream, shard, event string
	sequence             sluice.Sequence
	keys                 string
}

// track is the state of one record.
type track struct {
	rec      *sluice.Record   // from the caller
	memory   []*sluice.Record // copies given to handlers
	outcomes []*Outcome
	open     int // unfinished routes
	settled  bool
}

func (r *runner) add(copied, given *sluice.Record) {
	t := &track{rec: given, memory: []*sluice.Record{copied}}
	r.tracks[identify(copied)] = append(r.tracks[identify(copied)], t)
	r.order = append(r.order, t)
}

func identify(rec *sluice.Record) identity {
	return identity{rec.StreamARN, rec.ShardID, rec.EventID, rec.Sequence, string(rec.Keys.Raw())}
}

// find returns the track of an unsettled record.
func (r *runner) find(rec *sluice.Record) *track {
	for _, t := range r.tracks[identify(rec)] {
		if t.settled {
			continue
		}
		for _, seen := range t.memory {
			if seen == rec {
				return t
			}
		}
		t.memory = append(t.memory, rec)
		return t
	}
	panic("streamtest: the flow runs a record that it was not given")
}

func (t *track) outcome(route string) *Outcome {
	for _, o := range t.outcomes {
		if o.Route == route {
			return o
		}
	}
	o := &Outcome{Record: t.rec, Route: route}
	t.outcomes = append(t.outcomes, o)
	return o
}

// Routes implements [sluice.Matcher].
func (r *runner) Routes() []*sluice.Route { return r.routes }

// Match implements [sluice.Matcher].
func (r *runner) Match(dst []*sluice.Route, rec *sluice.Record) ([]*sluice.Route, error) {
	n := len(dst)
	dst, err := r.inner.Match(dst, rec)
	if err != nil {
		return dst, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.find(rec)
	t.open = len(dst) - n
	for i, rt := range dst[n:] {
		if rt.Index >= 0 && rt.Index < len(r.routes) && r.routes[rt.Index].Name == rt.Name {
			dst[n+i] = r.routes[rt.Index]
		}
		t.outcome(rt.Name)
	}
	return dst, nil
}

const defaultAttempts = 8 // the flow's own

// handler is h, as part of route, without the waits.
func (r *runner) handler(route *sluice.Route, h sluice.Handler) sluice.Handler {
	attempts := route.Attempts
	if attempts <= 0 {
		attempts = defaultAttempts
	}
	return func(ctx context.Context, rec *sluice.Record) (err error) {
		o := r.begin(rec, route)
		if o.exited != nil {
			return sluice.Permanent(o.exited)
		}
		returned := false
		defer func() {
			if returned {
				return
			}
			p := &outcomes.Panic{Value: recover(), Stack: debug.Stack()}
			if p.Value == nil { // such as t.FailNow: once is enough
				r.mu.Lock()
				defer r.mu.Unlock()
				o.Errs, o.exited = append(o.Errs, p), p
				return // the goroutine continues to its end
			}
			err = r.failed(o, p, attempts, route)
		}()
		err = h(ctx, rec)
		returned = true
		if err == nil || sluice.IsSkip(err) {
			return err
		}
		return r.failed(o, err, attempts, route)
	}
}

// begin counts a call, unless the handler ended its goroutine before.
func (r *runner) begin(rec *sluice.Record, route *sluice.Route) *Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.find(rec).outcome(route.Name)
	if o.exited == nil {
		o.Calls++
	}
	return o
}

// failed notes a failure and returns the error for the flow.
func (r *runner) failed(o *Outcome, err error, attempts int, route *sluice.Route) error {
	r.mu.Lock()
	o.Errs = append(o.Errs, err)
	failures := len(o.Errs)
	r.mu.Unlock()
	switch {
	case r.stop || sluice.IsPermanent(err):
		return err
	case failures >= attempts:
		return sluice.Permanent(err)
	}
	if rest, ok := errors.AsType[*sluice.Remaining](err); ok {
		now := &sluice.Remaining{Err: atOnce{err}}
		if rest.Rest != nil {
			now.Rest = r.handler(route, rest.Rest)
		}
		return now
	}
	if _, ok := errors.AsType[*outcomes.Retry](err); ok {
		return atOnce{err}
	}
	return err
}

// atOnce is an error without a request for a delay. errors.Is and errors.As still
// see all of it.
type atOnce struct{ err error }

func (e atOnce) Error() string        { return e.err.Error() }
func (e atOnce) Is(target error) bool { return errors.Is(e.err, target) }
func (e atOnce) As(target any) bool {
	if _, delay := target.(**outcomes.Retry); delay {
		return false
	}
	return errors.As(e.err, target)
}

// handled is the flow's Handled hook.
func (r *runner) handled(ctx context.Context, rec *sluice.Record, route *sluice.Route, how flow.Result, took time.Duration, err error) {
	if r.hook != nil {
		r.hook(ctx, rec, route, how, took, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.find(rec)
	o := t.outcome(routed.Name(route))
	o.Result, o.told = how, true
	if len(o.Errs) == 0 || how == flow.Skipped || how == flow.Done {
		o.Err = err
	} else {
		o.Err = o.Errs[len(o.Errs)-1]
	}
	if how == flow.Retried || how == flow.Stopped {
		return
	}
	if t.open--; t.open > 0 && route != nil {
		return
	}
	t.settled = true
	for _, rec := range t.memory {
		overwrite(rec)
	}
}
