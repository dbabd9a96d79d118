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
)

// Run hands records to the handlers of m, which is a router, through a real
// flow, and tells what became of each. It needs no source and no waiting.
//
// The records run one after another in the order given, and a failure is
// retried before the next record begins, so that what handlers do has the same
// order in every run. Where the daemon would wait, Run does not: backoff, the
// delay of [sluice.RetryAfter] and a route's Rate are left out. Where the daemon
// asks whether a route works for other records, Run only counts: a record that
// fails as many times as its route has Attempts (8 by default) is parked, as
// poison is. A permanent failure is parked at once, and so is any failure of a
// record older than its route's MaxAge (20 hours by default). Timeouts are real.
//
// Once a record is settled its memory is overwritten, so that a handler that
// keeps an image, or a part of one, without [sluice.Record.Clone] is seen to.
// recs themselves stay as they are.
//
// When ctx ends, so does Run.
func Run(ctx context.Context, m sluice.Matcher, recs ...sluice.Record) *Result {
	return RunWith(ctx, flow.Options{}, m, recs...)
}

// RunWith is Run with options of the flow. With a Concurrency, items run
// beside each other, as in production: for the race detector, and for sinks
// whose callers share requests. With the policy [flow.Stop] nothing is retried
// and the first failure ends the run, as under Lambda.
//
// Without a DeadLetter parked records are only noted in the Result; one that
// fails is tried again as in production, with real delays. Group is not used.
// Without a Logger nothing is logged.
func RunWith(ctx context.Context, o flow.Options, m sluice.Matcher, recs ...sluice.Record) *Result {
	r := &runner{inner: m, stop: o.Policy == flow.Stop, hook: o.Hooks.Handled, tracks: map[identity][]*track{}}
	for _, inner := range m.Routes() {
		rt := *inner // no flow has used it, and this one is the run's own
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

// noted are the dead letters of a run that has none.
type noted struct{}

func (noted) Park(context.Context, *sluice.Record, sluice.Failure) error { return nil }

// runner stands between a flow and a Matcher.
type runner struct {
	inner  sluice.Matcher
	stop   bool
	routes []*sluice.Route
	hook   func(*sluice.Record, *sluice.Route, flow.Result, time.Duration, error)

	mu     sync.Mutex
	tracks map[identity][]*track // alike ones in the order in which they run
	order  []*track
}

// identity tells records apart whose flow copies them. Records of one identity
// are of one item, and run one after another.
type identity struct {
	stream, shard, event string
	sequence             sluice.Sequence
	keys                 string
}

// track is what is known of one record.
type track struct {
	rec      *sluice.Record   // as the caller gave it
	memory   []*sluice.Record // the copies that handlers were given
	outcomes []*Outcome
	open     int // routes that have not ended
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

// find returns the track of a record that is not settled.
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

// handler is h, a part of what route does, without the waits.
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
			p := &sluice.PanicError{Value: recover(), Stack: debug.Stack()}
			if p.Value == nil { // t.FailNow, for example: once is enough
				r.mu.Lock()
				defer r.mu.Unlock()
				o.Errs, o.exited = append(o.Errs, p), p
				return // and the goroutine goes on to its end
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

// failed notes a failure and returns what the flow is to know of it.
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
	if _, ok := errors.AsType[*sluice.RetryError](err); ok {
		return atOnce{err}
	}
	return err
}

// atOnce is an error that asks for no delay. Whoever else looks into it sees
// all of it.
type atOnce struct{ err error }

func (e atOnce) Error() string        { return e.err.Error() }
func (e atOnce) Is(target error) bool { return errors.Is(e.err, target) }
func (e atOnce) As(target any) bool {
	if _, delay := target.(**sluice.RetryError); delay {
		return false
	}
	return errors.As(e.err, target)
}

// handled is the flow's hook.
func (r *runner) handled(rec *sluice.Record, route *sluice.Route, how flow.Result, took time.Duration, err error) {
	if r.hook != nil {
		r.hook(rec, route, how, took, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.find(rec)
	name := ""
	if route != nil {
		name = route.Name
	}
	o := t.outcome(name)
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
