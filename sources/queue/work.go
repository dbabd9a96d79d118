package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/outcomes"
	"github.com/sluicehq/sluice/internal/routed"
)

// work runs a lane's messages one after another. It deletes a message before it
// starts the next of its group, so that a failed deletion never returns an earlier
// message after a later one.
func (s *source) work(ctx context.Context, t terms, lane string) {
	for {
		m := s.hand.next(lane)
		switch {
		case m == nil:
			return
		case ctx.Err() != nil:
			ms := s.giveBackLane(t, lane, m, 0)
			s.ended(EndUnused, ms...)
		default:
			s.one(ctx, t, m)
		}
	}
}

// one handles m and acts on the result. If m comes again, so do the messages
// behind it, so that none overtakes it.
func (s *source) one(ctx context.Context, t terms, m *message) {
	v := s.handle(ctx, t, m)
	switch {
	case v.lost:
		ms := s.empty(m.lane, m, s.drop)
		s.ended(EndLost, ms...)
	case v.end == EndReturned:
		ms := s.giveBackLane(t, m.lane, m, v.after)
		s.ended(EndReturned, m)
		s.ended(EndUnused, ms[1:]...)
	default:
		s.judge.forget(m.ID)
		err := s.delete(t, m)
		if err == nil {
			s.ended(v.end, m)
			return
		}
		s.ended(EndLost, m)
		s.log().Warn("a message was handled and may come again: it could not be deleted", "message", m.ID, "received", m.Received, "error", err)
		if s.fifo {
			ms := s.giveBackLane(t, m.lane, nil, 0)
			s.ended(EndUnused, ms...)
		}
	}
}

// giveBackLane returns m and all of its lane after the delay. If that took so long
// that they came again meanwhile, others may have come behind them.
func (s *source) giveBackLane(t terms, lane string, m *message, after time.Duration) []*message {
	return s.empty(lane, m, func(ms []*message) { s.giveBack(t, ms, after) })
}

// empty releases m and all of its lane.
func (s *source) empty(lane string, m *message, release func([]*message)) (all []*message) {
	for ms := s.hand.giveUp(lane, m); len(ms) > 0; ms = s.hand.giveUp(lane, nil) {
		release(ms)
		all = append(all, ms...)
	}
	return all
}

func (s *source) ended(e End, ms ...*message) {
	if hook := s.c.o.Hooks.Ended; hook != nil {
		for range ms {
			hook(s.name, e)
		}
	}
}

// verdict is the decision about a message.
type verdict struct {
	end   End
	after time.Duration // of EndReturned
	lost  bool          // another consumer may have it, or its handler runs and Run no longer waits for it
}

// call is a flow's report of a message's last call.
type call struct {
	ctx    context.Context // of the hook
	rec    *sluice.Record
	route  *sluice.Route
	result flow.Result
	took   time.Duration
	err    error
	ended  int // routes that ended, this time

	refused *sluice.Failure // refused by the dead letters
}

// letters are dead letters that remember refusals.
type letters struct {
	flow.DeadLetter
	refused *sluice.Failure
}

func (l *letters) Park(ctx context.Context, rec *sluice.Record, f sluice.Failure) error {
	l.refused = &f // also if it panics
	err := l.DeadLetter.Park(ctx, rec, f)
	if err == nil {
		l.refused = nil
	}
	return err
}

var errLapsed = errors.New("another consumer may have the message: its visibility timeout is over")

// handle runs m through its own flow, without retries. A message of a paused route
// stays in hand until the pause or ctx ends, or SQS hides it no longer.
func (s *source) handle(ctx context.Context, t terms, m *message) verdict {
	o := s.c.o
	var last call
	parked, ended := false, 0
	hooks := o.FlowHooks
	hooks.ParkFailed = nil // refused reports it
	hooks.Handled = func(ctx context.Context, rec *sluice.Record, route *sluice.Route, r flow.Result, took time.Duration, err error) {
		switch r {
		case flow.Done:
			s.judge.succeeded(route.Name)
		case flow.Parked:
			parked = true
			s.log().WarnContext(ctx, "message parked as a dead letter", "route", routed.Name(route), "message", m.ID, "received", m.Received, "error", err)
		case flow.Stopped: // logged once the decision is known
			last = call{ctx: ctx, rec: rec, route: route, result: r, took: took, err: err, ended: ended}
			return
		}
		ended++
		if next := o.FlowHooks.Handled; next != nil {
			next(ctx, rec, route, r, took, err)
		}
	}
	var dead flow.DeadLetter
	l := &letters{DeadLetter: o.DeadLetter}
	if o.DeadLetter != nil {
		dead = l
	}
	handlers, cut := context.WithCancelCause(t.handlers)
	defer cut(nil)
	f := flow.Open(handlers, s.c.matcher, flow.Options{
		Concurrency: 1, Window: 1, WindowBytes: math.MaxInt64, MaxAhead: 1,
		Policy: flow.Stop, DeadLetter: dead, StuckAfter: o.StuckAfter, Group: s.c.group, Hooks: hooks, Logger: o.Logger,
		Admit: func(context.Context) error {
			if !s.hand.lapsed(m) {
				return nil
			}
			cut(errLapsed)
			return errLapsed
		},
	})
	rec := m.Record(s.arn)
	_, submitErr := f.Submit(t.handlers, *rec)
	defer context.AfterFunc(ctx, f.Leave)()
	_, _, limit := s.hand.lease(m)
	defer time.AfterFunc(time.Until(limit)-min(o.Visibility, maxHold/2), f.Leave).Stop()
	n, err := f.Close(t.giveUp)
	if n == 1 {
		s.pace.succeeded()
		if parked {
			return verdict{end: EndParked}
		}
		return verdict{end: EndSettled}
	}
	select {
	case <-f.Idle():
	default:
		return verdict{lost: true}
	}
	err = cmp.Or(err, submitErr)
	if last.rec == nil || errors.Is(err, errLapsed) { // it was not called
		return verdict{end: EndReturned, lost: s.hand.lapsed(m)}
	}
	last.refused = l.refused
	v := s.failed(t, m, rec, last, err)
	if next := o.FlowHooks.Handled; next != nil && last.rec != nil {
		switch {
		case v.end == EndParked:
			last.result = flow.Parked
		case o.DeadLetter != nil || !sluice.IsPermanent(last.err):
			last.result = flow.Retried
		}
		next(last.ctx, last.rec, last.route, last.result, last.took, last.err)
	}
	return v
}

// failed decides about m after err prevented its settling.
func (s *source) failed(t terms, m *message, rec *sluice.Record, last call, err error) verdict {
	o := s.c.o
	if t.handlers.Err() != nil { // cut off: says nothing about the message
		return verdict{end: EndReturned}
	}
	if r, ok := errors.AsType[*flow.RecordError](err); ok {
		err = r.Err
	}
	attrs := []any{"route", routed.Name(last.route), "message", m.ID, "received", m.Received, "error", err}
	var route sluice.Route // its limits
	if last.route != nil {
		route.Attempts, route.Backoff, route.MaxBackoff = last.route.Attempts, last.route.Backoff, last.route.MaxBackoff
	}
	route.Attempts = cmp.Or(route.Attempts, o.MaxReceives)
	route.Backoff = cmp.Or(route.Backoff, o.Backoff)
	route.MaxBackoff = cmp.Or(route.MaxBackoff, max(o.MaxBackoff, route.Backoff))
	if sluice.IsPermanent(last.err) && o.DeadLetter == nil {
		after := route.MaxBackoff
		s.log().Error("a message failed for good and is not parked: it comes again, until the queue's redrive policy or retention takes it", append(attrs, "retryIn", after)...)
		return verdict{end: EndReturned, after: after}
	}
	now := time.Now()
	f := sluice.Failure{Route: routed.Name(last.route), Attempts: m.Received, First: err, FirstAt: now, Last: err, LastAt: now}
	var poison, open bool
	if last.route != nil && (asked(err) <= 0 || outcomes.IsOverloaded(err)) { // a RetryAfter alone says nothing about the route
		var counted int
		counted, open = s.judge.failed(last.route.Name, m.ID, err, &f)
		poison = m.Received >= route.Attempts && counted > 1 && !open && !outcomes.IsOverloaded(err)
		if open {
			s.pace.failed(now)
		}
	}
	if last.refused != nil { // err has the refusal; f must say why the message failed
		perr := err
		f, poison = *last.refused, false
		f.Attempts, err = m.Received, f.Last
		attrs[7] = err
		s.refused(rec, last.route, attrs, perr)
	}
	old := now.Add(maxHold) // when the queue will drop it
	if !m.Sent.IsZero() {
		old = m.Sent.Add(time.Duration(ofRetention * float64(s.retention)))
	}
	if o.DeadLetter != nil && (poison || !now.Before(old)) {
		perr := s.park(t, rec, f, last.ended)
		if perr == nil {
			s.log().Warn("message parked as a dead letter", attrs...)
			return verdict{end: EndParked}
		}
		s.refused(rec, last.route, attrs, perr)
	}
	after := asked(err)
	if after <= 0 {
		after = s.backoff(m, route.Backoff, route.MaxBackoff)
	}
	if left := old.Sub(now); o.DeadLetter != nil && left > 0 { // return it in time to be parked
		after = min(after, max(left, time.Second))
	}
	if unlogged, ok := s.failures.due(now); ok {
		s.log().Warn("message failed: it comes again", append(attrs, "retryIn", after, "unlogged", unlogged)...)
	}
	return verdict{end: EndReturned, after: after}
}

// refused reports that the dead letters did not take rec.
func (s *source) refused(rec *sluice.Record, route *sluice.Route, attrs []any, err error) {
	s.log().Error("dead letters failed: the message comes again", append(attrs, "deadLetterError", err)...)
	if hook := s.c.o.FlowHooks.ParkFailed; hook != nil {
		hook(rec, route, err)
	}
}

// park parks rec, for its route, or for all routes if others have not ended. The
// dead letters may panic or end the goroutine like a handler; Run does not wait
// for them at its end.
func (s *source) park(t terms, rec *sluice.Record, f sluice.Failure, ended int) error {
	result := outcomes.Go(func() error {
		if routes, merr := s.c.matcher.Match(nil, rec); f.Route != "" && (merr != nil || len(routes) > ended+1) {
			f.Last = fmt.Errorf("route %q: %w; routes after it have not run", f.Route, f.Last)
			f.Route = ""
		}
		return s.c.o.DeadLetter.Park(t.giveUp, rec, f)
	})
	select {
	case err := <-result:
		return err
	case <-t.writes.Done():
		return t.writes.Err()
	}
}

// asked returns the delay that err asks for.
func asked(err error) (after time.Duration) {
	if r, ok := errors.AsType[*sluice.Remaining](err); ok {
		after = r.After
	}
	if r, ok := errors.AsType[*outcomes.Retry](err); ok {
		after = max(after, r.After)
	}
	return after
}

// backoff returns a random delay that grows with the receives of m.
func (s *source) backoff(m *message, base, limit time.Duration) time.Duration {
	return max(backoff.Full(base, limit, m.Received), time.Second)
}
