package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/outcomes"
	"github.com/sluicehq/sluice/internal/retrying"
	"github.com/sluicehq/sluice/internal/routed"
)

const (
	slowAfter    = 3 * time.Second  // a call that runs for so long is shown
	triedAfter   = 10 * time.Second // an older error is shown with its time
	failureCount = 4                // records of a route whose failures are kept: of more, flow knows that the route is in trouble
	failureLasts = 2 * time.Minute  // a failure counts for so long, unless the record is tried again: a message may be with another process
)

// failingAfter is how long nothing must succeed for a route until it is in trouble.
// Tests of the whole daemon have less.
var failingAfter = 5 * time.Second

// calls knows which calls of handlers run and which records failed last. flow
// tells a bad record from a bad route by many records; calls speaks about the
// present call, and about the few records of a quiet table.
type calls struct{ routes []*routeCalls }

// watchCalls returns a Matcher as m whose calls are watched.
func watchCalls(m sluice.Matcher) (*calls, sluice.Matcher) {
	c := &calls{}
	return c, routed.Rewrite(m, func(own *sluice.Route) {
		rc := &routeCalls{name: own.Name, lasts: max(failureLasts, 2*own.MaxBackoff)}
		c.routes = append(c.routes, rc)
		own.Handler = rc.watched(own.Handler)
	})
}

// named returns the calls of a route, or nil.
func (c *calls) named(route string) *routeCalls {
	if i := slices.IndexFunc(c.routes, func(rc *routeCalls) bool { return rc.name == route }); i >= 0 {
		return c.routes[i]
	}
	return nil
}

// running returns a route with a call that has not returned, or "".
func (c *calls) running() string {
	for _, rc := range c.routes {
		for i := range rc.lists {
			l := &rc.lists[i]
			l.mu.Lock()
			runs := len(l.running) > 0
			l.mu.Unlock()
			if runs {
				return rc.name
			}
		}
	}
	return ""
}

// handled notes that a parked record fails no more: see flow.Hooks.
func (c *calls) handled(_ context.Context, rec *sluice.Record, route *sluice.Route, r flow.Result, _ time.Duration, _ error) {
	if r == flow.Parked && route != nil {
		if rc := c.named(route.Name); rc != nil {
			rc.forget(identify(rec))
		}
	}
}

// routeCalls are the calls of one route.
type routeCalls struct {
	name  string
	lasts time.Duration // see failureLasts
	lists [8]callList   // that run, spread so that workers seldom wait for each other

	mu       sync.Mutex // may be held when that of a list is taken, not the other way round
	failures []failure
	failedAt time.Time   // when a call failed last
	failing  atomic.Bool // there are failures
}

// callList are calls that run.
type callList struct {
	mu      sync.Mutex
	running []*oneCall
	_       [32]byte // each has a cache line of its own
}

// identity names a record.
type identity struct{ table, shard, sequence, event string }

func identify(rec *sluice.Record) identity {
	return identity{rec.Table, rec.ShardID, string(rec.Sequence), rec.EventID}
}

// cloned is i without memory of a page.
func (i identity) cloned() identity {
	return identity{strings.Clone(i.table), strings.Clone(i.shard), strings.Clone(i.sequence), strings.Clone(i.event)}
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
	route *routeCalls
	began time.Time
	ctx   retrying.Context

	// Guarded by the mutex of its list. Once it has returned, rec and tried are nil: errors
	// of the AWS SDK keep its context, which must keep no record.
	at    int // index in the list
	rec   *sluice.Record
	tried *tried
}

// tried are the tries that a sink repeats by itself.
type tried struct {
	err   error // of the last
	since time.Time
}

// list is the one of its route that a call is in: any that other calls are
// seldom in.
func (c *oneCall) list() *callList {
	return &c.route.lists[c.began.Nanosecond()%len(c.route.lists)]
}

// Retrying is called by sinks; see [retrying.Listener].
func (c *oneCall) Retrying(err error) {
	c.route.mu.Lock()
	defer c.route.mu.Unlock()
	list := c.list()
	list.mu.Lock()
	defer list.mu.Unlock()
	if c.rec == nil {
		return // has returned
	}
	now := time.Now()
	if c.tried == nil {
		c.tried = &tried{since: now}
	}
	c.tried.err = err
	c.route.failed(identify(c.rec), err, now)
}

func (rc *routeCalls) watched(h sluice.Handler) sluice.Handler {
	return func(ctx context.Context, rec *sluice.Record) error {
		c := &oneCall{route: rc, began: time.Now(), rec: rec}
		c.ctx = retrying.Context{Context: ctx, Listener: c}
		c.list().add(c)
		ended := false
		defer func() {
			if !ended {
				rc.end(c, rec, errPanic)
			}
		}()
		err := h(&c.ctx, rec)
		ended = true
		rc.end(c, rec, err)
		if rest, ok := err.(*sluice.Remaining); ok && rest.Rest != nil { // another error around it keeps its rest
			err = &sluice.Remaining{Rest: rc.watched(rest.Rest), After: rest.After, Err: rest.Err}
		}
		return err
	}
}

var errPanic = errors.New("the handler panics: the log has the stack")

func (l *callList) add(c *oneCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.at = len(l.running)
	l.running = append(l.running, c)
}

func (l *callList) remove(c *oneCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := len(l.running) - 1
	l.running[c.at], l.running[end].at = l.running[end], c.at
	l.running[end] = nil
	l.running = l.running[:end]
	c.rec, c.tried = nil, nil
}

// end notes how c, which was of rec, ended.
func (rc *routeCalls) end(c *oneCall, rec *sluice.Record, err error) {
	c.list().remove(c)
	if err == nil && !rc.failing.Load() {
		return // nearly all
	}
	rc.mu.Lock()
	defer rc.mu.Unlock()
	switch {
	case err == nil:
		rc.succeeded(identify(rec), c.began)
	case errors.Is(c.ctx.Err(), context.Canceled): // cut off
	case tellsOfRoute(err):
		rc.failed(identify(rec), err, time.Now())
	default:
		rc.drop(identify(rec))
	}
}

// tellsOfRoute reports whether the route's target may have caused err. A handler
// that asks for a delay says that it has not.
func tellsOfRoute(err error) bool {
	var after time.Duration
	if wish, ok := errors.AsType[*outcomes.Retry](err); ok {
		after = wish.After
	}
	if rest, ok := errors.AsType[*sluice.Remaining](err); ok {
		after = max(after, rest.After)
	}
	return !sluice.IsSkip(err) && !sluice.IsPermanent(err) && (after <= 0 || outcomes.IsOverloaded(err))
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
	f := failure{of: of.cloned(), since: now, last: now, err: err}
	rc.failing.Store(true)
	switch {
	case len(rc.failures) < failureCount:
		rc.failures = append(rc.failures, f)
	case free >= 0:
		rc.failures[free] = f
	}
}

// succeeded notes the success of a call that began at a time. mu is held.
func (rc *routeCalls) succeeded(of identity, began time.Time) {
	rc.drop(of)
	for i := range rc.failures {
		if f := &rc.failures[i]; began.After(f.since) { // else the sink may have failed meanwhile
			f.succeeded = true
		}
	}
}

// drop forgets a failure. mu is held.
func (rc *routeCalls) drop(of identity) {
	rc.failures = slices.DeleteFunc(rc.failures, func(f failure) bool { return f.of == of })
	rc.failing.Store(len(rc.failures) > 0)
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
	slow := rc.slow(now)
	n, since, err := rc.troubled(now, slow)
	if n == 0 {
		return ""
	}
	what, _ := rc.present(err, now, slow)
	text := fmt.Sprintf("route %q fails for %s since %s, and no other has succeeded since: %v: repair what it calls", rc.name, plural(n, "record"), since.Format(time.RFC3339), what)
	if !errors.As(what, new(*net.OpError)) { // else no record is at fault
		text += fmt.Sprintf("; if the record is at fault: sluice park --route %q", rc.name)
	}
	return text
}

// troubled returns the number of records in trouble, the time of the first
// failure, and the last error. mu is held.
func (rc *routeCalls) troubled(now time.Time, running []slow) (n int, since time.Time, err error) {
	var last time.Time
	for _, f := range rc.failures {
		again := slices.ContainsFunc(running, func(s slow) bool { return s.of == f.of && s.began.After(f.last) })
		if f.succeeded || now.Sub(f.last) > rc.lasts && !again {
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

// present is the error of the route as of now, and the number of calls that run and
// have it: err is that of the last call that ended, unless a sink tries again, or
// hangs since. mu is held.
func (rc *routeCalls) present(err error, now time.Time, running []slow) (_ error, hanging int) {
	var first error
	for _, s := range running {
		if s.retries || err != nil && s.began.Add(slowAfter).After(rc.failedAt) {
			if hanging++; hanging == 1 {
				first = s.err
			}
		}
	}
	switch {
	case hanging > 0:
		return first, hanging
	case err != nil && now.Sub(rc.failedAt) >= triedAfter && !rc.failedAt.IsZero():
		return fmt.Errorf("last tried %s: %w", rc.failedAt.Format(time.RFC3339), err), 0
	}
	return err, 0
}

// slow is a call that runs for slowAfter or longer.
type slow struct {
	route   string
	of      identity
	origin  sluice.Origin
	began   time.Time
	retries bool  // its sink tries again by itself
	err     error // current error
}

// slow lists the calls that have run for slowAfter, the oldest first.
func (rc *routeCalls) slow(now time.Time) (all []slow) {
	for i := range rc.lists {
		l := &rc.lists[i]
		l.mu.Lock()
		for _, c := range l.running {
			if now.Sub(c.began) < slowAfter {
				continue
			}
			s := slow{route: rc.name, of: identify(c.rec).cloned(), origin: c.rec.Origin, began: c.began, retries: c.tried != nil}
			if s.retries {
				s.err = fmt.Errorf("tried again by the sink since %s: %w", c.tried.since.Format(time.RFC3339), c.tried.err)
			} else {
				s.err = fmt.Errorf("no answer for %v, since %s", now.Sub(c.began).Round(time.Second), c.began.Format(time.RFC3339))
			}
			all = append(all, s)
		}
		l.mu.Unlock()
	}
	slices.SortStableFunc(all, func(a, b slow) int { return a.began.Compare(b.began) })
	return all
}

// slow lists those of all routes.
func (c *calls) slow(now time.Time) (all []slow) {
	for _, rc := range c.routes {
		all = append(all, rc.slow(now)...)
	}
	return all
}
