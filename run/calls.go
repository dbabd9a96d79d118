package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/retrying"
)

const (
	slowAfter    = 3 * time.Second  // a call that runs for so long is shown
	triedAfter   = 10 * time.Second // an error that is older is told with its time
	failingAfter = 5 * time.Second  // a route for which nothing succeeds for so long is in trouble
	failureCount = 4                // records of a route whose failures are kept: of more, flow knows that the route is in trouble
	failureLasts = 2 * time.Minute  // a failure counts for so long, unless the record is tried again: a message may be with another process
)

// calls knows which calls of handlers run and which records failed last. flow
// tells a bad record from a bad route by many records; calls speaks about the
// present call, and about the few records of a quiet table.
type calls struct{ routes []*routeCalls }

// watchCalls wraps the handlers of m's routes. It must run before the first call.
func watchCalls(m sluice.Matcher) *calls {
	c := &calls{}
	for _, r := range m.Routes() {
		rc := &routeCalls{name: r.Name, lasts: max(failureLasts, 2*r.MaxBackoff)}
		r.Handler = rc.watched(r.Handler)
		c.routes = append(c.routes, rc)
	}
	return c
}

// named returns the calls of a route, or nil.
func (c *calls) named(route string) *routeCalls {
	for _, rc := range c.routes {
		if rc.name == route {
			return rc
		}
	}
	return nil
}

// parked adds to h that a parked record fails no more.
func (c *calls) parked(h flow.Hooks) flow.Hooks {
	next := h.Handled
	h.Handled = func(rec *sluice.Record, route *sluice.Route, r flow.Result, took time.Duration, err error) {
		if r == flow.Parked && route != nil {
			if rc := c.named(route.Name); rc != nil {
				rc.forget(identify(rec))
			}
		}
		next(rec, route, r, took, err)
	}
	return h
}

// routeCalls are the calls of one route.
type routeCalls struct {
	name  string
	lasts time.Duration // see failureLasts

	mu          sync.Mutex
	first, last *oneCall // that run, the oldest first
	failures    []failure
	failedAt    time.Time // when a call failed last
}

// identity names a record.
type identity struct{ table, shard, sequence, event string }

func identify(rec *sluice.Record) identity {
	return identity{rec.Table, rec.ShardID, string(rec.Sequence), rec.EventID}
}

// failure is a record whose last call failed.
type failure struct {
	of          identity
	since, last time.Time
	err         error
	succeeded   bool // the route, for another record, since then: this record may be at fault
}

// oneCall is a call that runs. It listens to the sinks.
type oneCall struct {
	route      *routeCalls
	of         identity
	origin     sluice.Origin
	began      time.Time
	ctx        retrying.Context
	prev, next *oneCall

	// Of the tries that a sink repeats by itself; guarded by route.mu.
	err   error // the last; nil: none failed
	since time.Time
}

// Retrying is called by sinks; see [retrying.Listener].
func (c *oneCall) Retrying(err error) {
	c.route.mu.Lock()
	defer c.route.mu.Unlock()
	now := time.Now()
	if c.err == nil {
		c.since = now
	}
	c.err = err
	c.route.failed(c.of, err, now)
}

func (rc *routeCalls) watched(h sluice.Handler) sluice.Handler {
	return func(ctx context.Context, rec *sluice.Record) (err error) {
		c := &oneCall{route: rc, of: identify(rec), origin: rec.Origin, began: time.Now()}
		c.ctx = retrying.Context{Context: ctx, Listener: c}
		rc.begin(c)
		returned := false
		defer func() {
			if !returned {
				err = errPanic
			}
			rc.end(c, err, ctx.Err())
		}()
		err = h(&c.ctx, rec)
		returned = true
		if rest, ok := err.(*sluice.Remaining); ok && rest.Rest != nil { // another error around it keeps its rest
			err = &sluice.Remaining{Rest: rc.watched(rest.Rest), After: rest.After, Err: rest.Err}
		}
		return err
	}
}

var errPanic = errors.New("the handler panics: the log has the stack")

func (rc *routeCalls) begin(c *oneCall) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	if c.prev = rc.last; rc.last == nil {
		rc.first = c
	} else {
		rc.last.next = c
	}
	rc.last = c
}

func (rc *routeCalls) end(c *oneCall, err, ended error) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	if c.prev == nil {
		rc.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		rc.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	switch {
	case err == nil:
		if len(rc.failures) > 0 {
			rc.succeeded(c.of)
		}
	case errors.Is(ended, context.Canceled): // cut off
	case tellsOfRoute(err):
		rc.failed(c.of, err, time.Now())
	case len(rc.failures) > 0:
		rc.drop(c.of)
	}
}

// tellsOfRoute reports whether err may be the fault of what the route calls.
func tellsOfRoute(err error) bool {
	var wish *sluice.RetryError
	return !sluice.IsSkip(err) && !sluice.IsPermanent(err) && (!errors.As(err, &wish) || sluice.IsOverloaded(err))
}

// failed notes a failure. mu is held.
func (rc *routeCalls) failed(of identity, err error, now time.Time) {
	rc.failedAt = now
	free := -1
	for i := range rc.failures {
		f := &rc.failures[i]
		if f.of == of {
			f.err, f.last = err, now
			return
		}
		if f.succeeded || now.Sub(f.last) > rc.lasts {
			free = i
		}
	}
	of = identity{strings.Clone(of.table), strings.Clone(of.shard), strings.Clone(of.sequence), strings.Clone(of.event)} // of a page
	f := failure{of: of, since: now, last: now, err: err}
	switch {
	case len(rc.failures) < failureCount:
		rc.failures = append(rc.failures, f)
	case free >= 0:
		rc.failures[free] = f
	}
}

// succeeded notes a success. mu is held.
func (rc *routeCalls) succeeded(of identity) {
	rc.drop(of)
	for i := range rc.failures {
		rc.failures[i].succeeded = true
	}
}

// drop forgets a failure. mu is held.
func (rc *routeCalls) drop(of identity) {
	for i, f := range rc.failures {
		if f.of == of {
			rc.failures = append(rc.failures[:i], rc.failures[i+1:]...)
			return
		}
	}
}

func (rc *routeCalls) forget(of identity) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rc.drop(of)
}

// trouble says why the route seems to be down, or "": a record has failed for
// failingAfter, and no other succeeded since.
func (rc *routeCalls) trouble(now time.Time) string {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	n, since, err := rc.failing(now)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("route %q fails for %s since %s, and no other has succeeded since: repair what it calls; if the record is at fault, sluice park --route %q: %v",
		rc.name, plural(n, "record"), since.Format(time.RFC3339), rc.name, rc.present(err, now))
}

// failing counts the records that trouble tells of, since when the first has
// failed, and the last error. mu is held.
func (rc *routeCalls) failing(now time.Time) (n int, since time.Time, err error) {
	var last time.Time
	for _, f := range rc.failures {
		if f.succeeded || now.Sub(f.last) > rc.lasts && !rc.runs(f.of) {
			continue
		}
		if n++; n == 1 || f.since.Before(since) {
			since = f.since
		}
		if n == 1 || f.last.After(last) {
			last, err = f.last, f.err
		}
	}
	if now.Sub(since) < failingAfter {
		return 0, since, nil
	}
	return n, since, err
}

// runs reports whether a call for the record runs. mu is held.
func (rc *routeCalls) runs(of identity) bool {
	for c := rc.first; c != nil; c = c.next {
		if c.of == of {
			return true
		}
	}
	return false
}

// present is the error of the route as of now: err is that of the last call. mu is held.
func (rc *routeCalls) present(err error, now time.Time) error {
	c := rc.first
	switch {
	case c != nil && now.Sub(c.began) >= slowAfter && (err != nil || c.err != nil):
		return c.present(now)
	case err != nil && now.Sub(rc.failedAt) >= triedAfter && !rc.failedAt.IsZero():
		return fmt.Errorf("last tried %s: %w", rc.failedAt.Format(time.RFC3339), err)
	}
	return err
}

// present is what the call comes to by now. mu is held.
func (c *oneCall) present(now time.Time) error {
	if c.err != nil {
		return fmt.Errorf("tried again by the sink since %s: %w", c.since.Format(time.RFC3339), c.err)
	}
	return fmt.Errorf("no answer for %v, since %s", now.Sub(c.began).Round(time.Second), c.began.Format(time.RFC3339))
}

// slow is a call that runs for slowAfter or longer.
type slow struct {
	route   string
	of      identity
	origin  sluice.Origin
	age     time.Duration
	retries bool  // its sink tries again by itself
	err     error // what it comes to by now
}

// slow lists the calls that have run for slowAfter, the oldest of each route first.
func (c *calls) slow(now time.Time) (all []slow) {
	for _, rc := range c.routes {
		rc.mu.Lock()
		for one := rc.first; one != nil && now.Sub(one.began) >= slowAfter; one = one.next {
			of := one.of
			of.table, of.shard, of.sequence = strings.Clone(of.table), strings.Clone(of.shard), strings.Clone(of.sequence)
			all = append(all, slow{rc.name, of, one.origin, now.Sub(one.began), one.err != nil, one.present(now)})
		}
		rc.mu.Unlock()
	}
	return all
}
