package flow

import (
	"context"
	"time"

	"github.com/sluicehq/sluice"
)

// call calls h under the limits of w.g, with w.permit taken. Its error is read
// as part of the call, because that runs methods of the error.
func (w *worker) call(h sluice.Handler) (v verdict) {
	w.enter(w.g.route)
	if w.flow.opts.Hooks.Handled != nil {
		w.began = time.Now()
	}
	w.phase = handling
	var err error
	if limit := w.g.route.Timeout; limit > 0 {
		err = withTimeout(w.ctx, limit, h, w.e.rec)
	} else {
		err = h(w.ctx, w.e.rec)
	}
	if err != nil {
		v = judge(err)
	}
	w.phase = ours
	w.returned()
	return v
}

func withTimeout(ctx context.Context, limit time.Duration, h sluice.Handler, rec *sluice.Record) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return h(ctx, rec)
}

// handled tells the hook.
func (w *worker) handled(r *sluice.Route, how Result, took time.Duration, err error) {
	if h := w.flow.opts.Hooks.Handled; h != nil && !w.flow.dead.Load() {
		h(w.e.rec, r, how, took, err)
	}
}

func (w *worker) took() time.Duration {
	if w.flow.opts.Hooks.Handled == nil {
		return 0
	}
	return time.Since(w.began)
}

// ended deals with the end of a call.
func (w *worker) ended(v verdict) {
	f, g := w.flow, w.g
	took := w.took()
	switch {
	case v.skip:
		g.release(w.permit, neutral)
		w.doneWith(Skipped, took, v.err)
	case v.err != nil:
		w.failed(v, took)
	default:
		if f.opts.Policy == Park && g.succeeded() {
			f.breakerMoved(g, false, nil)
		}
		g.release(w.permit, succeeded)
		w.doneWith(Done, took, nil)
	}
}

func (w *worker) doneWith(how Result, took time.Duration, err error) {
	if w.t != nil {
		w.flow.finishTask(w.t)
	}
	w.handled(w.g.route, how, took, err)
}

// failed decides what follows a failure: another try, the dead letters, or
// the end.
func (w *worker) failed(v verdict, took time.Duration) {
	f, g := w.flow, w.g
	if w.t == nil {
		w.t = f.addTask(w.e, g)
		w.t.cleared = true
		defer func() { w.t = nil }()
	}
	f.keep(w.e)
	t := w.t
	if f.ctx.Err() != nil {
		// Cut off: says nothing about the record nor about its route.
		g.release(w.permit, neutral)
		f.mu.Lock()
		t.state = due
		f.stop(0, context.Cause(f.ctx))
		f.mu.Unlock()
		w.handled(g.route, f.unfinished(), took, v.err)
		return
	}
	poison, open := v.permanent, false
	switch {
	case v.permanent || f.opts.Policy == Stop:
		g.release(w.permit, neutral)
	default:
		var counts, opened bool
		counts, opened, open = g.failed(t, v.err)
		g.release(w.permit, failed)
		if counts {
			t.counted++
		}
		poison = t.counted >= g.attempts && !open
		if opened {
			f.breakerMoved(g, true, v.err)
		}
	}
	now := time.Now()
	f.mu.Lock()
	t.failure.Attempts++
	t.note(v.err, now)
	t.took = took
	if v.rest != nil {
		t.handler = v.rest
	}
	how := f.unfinished()
	switch {
	case (poison || t.tooOld(now)) && f.opts.DeadLetter != nil:
		t.doomed, t.tries, t.state = true, 0, due
		how = Parked
	case f.opts.Policy == Stop:
		f.stopAt(t)
	case v.permanent:
		t.state, how = frozen, Stopped
	case open && v.after <= 0:
		t.state = due // to the end of the gate's queue, which paces the probes
	default:
		delay := v.after
		if delay <= 0 {
			delay = jittered(g.backoff, g.maxBackoff, t.tries)
		}
		t.tries++
		when := now.Add(delay)
		if v.after > 0 && t.tooOld(when) { // the stream would lose it before
			t.doomed, t.tries, when = true, 0, t.expires
		}
		f.backOff(t, when)
	}
	f.mu.Unlock()
	if f.opts.Policy == Park && how == Stopped {
		f.frozen(t)
	}
	if how == Retried {
		f.failing(t)
	}
	if how != Parked { // told once it is
		w.handled(g.route, how, took, v.err)
	}
}

// failing logs that t will be tried again, for one failure a second of each
// route: a sink that is down must not fill the log.
func (f *Flow) failing(t *task) {
	if untold, ok := t.gate.tell(time.Now()); ok {
		f.opts.Logger.Warn("record failed: will be tried again", append(recordAttrs(t), "unlogged", untold)...)
	}
}

// unfinished is how a call ended whose record will be handled again.
func (f *Flow) unfinished() Result {
	if f.opts.Policy == Stop {
		return Stopped
	}
	return Retried
}

// again goes on with a task.
func (w *worker) again(t *task) {
	f := w.flow
	if t.doomed {
		w.park(t)
		return
	}
	w.g = t.gate
	if f.opts.ParkItem && !t.cleared && !w.free(t.gate) {
		return
	}
	if !w.admitted(t) {
		return
	}
	w.ended(w.call(t.handler))
}

// admitted takes a permit for t, or leaves t waiting for one. A record that
// is too old for a route that fails for all does not wait.
func (w *worker) admitted(t *task) bool {
	f := w.flow
	cause := t.gate.outage()
	if cause != nil {
		f.keep(w.e)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.permitted {
		t.permitted = false
		w.permit = t.permit
		return true
	}
	if now := time.Now(); cause != nil && t.tooOld(now) {
		t.note(cause, now)
		t.doomed, t.state = true, due
		return false
	}
	if w.e.ord >= f.limit.Load() { // stopped meanwhile: nobody would withdraw it
		t.state = due
		return false
	}
	t.state = waiting
	if !t.gate.admit(t) {
		return false
	}
	t.state = running
	w.permit = t.permit
	return true
}

// breakerMoved tells that the breaker of g opened or closed.
func (f *Flow) breakerMoved(g *gate, open bool, err error) {
	if open {
		f.opts.Logger.Warn("route fails for every record: one probe at a time goes through until it succeeds",
			"route", g.route.Name, "error", err)
	} else {
		f.opts.Logger.Info("route works again", "route", g.route.Name)
	}
	if h := f.opts.Hooks.Breaker; h != nil && !f.dead.Load() {
		h(g.route, open, err)
	}
}
