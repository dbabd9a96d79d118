package flow

import (
	"context"
	"time"

	"github.com/sluicehq/sluice"
)

// invoke calls h for w.g, after w.g let the call through. It classifies the error
// inside the call, because that runs the error's own methods.
func (w *worker) invoke(h sluice.Handler) (v verdict) {
	if admit := w.flow.opts.Admit; admit != nil {
		if err := admit(w.ctx); err != nil {
			w.began = time.Now()
			return judge(err)
		}
	}
	w.enter(w.g.route)
	if w.call != nil {
		w.member.Watch(&w.call.self)
		defer w.member.Watch(nil)
	}
	if w.flow.opts.Hooks.timed() {
		w.began = time.Now()
	}
	ctx := w.ctx
	if t := w.traced(); t != nil {
		ctx = t.Call(ctx, w.e.rec, w.g.route, w.began, w.attempt())
		w.called = ctx
	}
	w.phase = handling
	var err error
	if limit := w.g.route.Timeout; limit > 0 {
		err = withTimeout(ctx, limit, h, w.e.rec)
	} else {
		err = h(ctx, w.e.rec)
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

// handled calls the Handled hook.
func (w *worker) handled(r *sluice.Route, how Result, took time.Duration, err error) {
	if h := w.flow.opts.Hooks.Handled; h != nil && !w.flow.dead.Load() {
		h(w.context(), w.e.rec, r, how, took, err)
	}
}

func (w *worker) took() time.Duration {
	if !w.flow.opts.Hooks.timed() {
		return 0
	}
	return time.Since(w.began)
}

// ended handles the end of a call.
func (w *worker) ended(v verdict) {
	g, took := w.g, w.took()
	switch v.kind {
	case succeeded:
		w.settled(succeeded, nil)
		w.doneWith(Done, took, nil)
	case skipped:
		w.settled(skipped, nil)
		w.doneWith(Skipped, took, v.err)
	default:
		w.failed(v, took)
	}
	if !g.calm.Load() {
		g.pump()
	}
}

// settled reports the end of a call to w.g if the call is counted, or if failures
// make it matter. A flow that stops at a failure does not judge routes.
func (w *worker) settled(k kind, err error) history {
	c := w.call
	w.call = nil
	if w.flow.opts.Policy == Stop {
		k = skipped
	}
	if c == nil && k <= skipped && w.g.calm.Load() {
		return history{}
	}
	h, moved := w.g.ended(c, w.e.item(), k, err)
	if moved {
		w.flow.announce(w.g)
	}
	return h
}

// notCalled returns a permit for a call that was not made.
func (w *worker) notCalled() {
	if w.call != nil {
		w.g.unused(w.call)
		w.call = nil
	}
}

func (w *worker) doneWith(how Result, took time.Duration, err error) {
	if w.t != nil {
		w.flow.finishTask(w.t, false, false)
	}
	w.endTrace(how, took, err)
	w.handled(w.g.route, how, took, err)
}

// failed acts on a failure: it retries, parks or stops.
func (w *worker) failed(v verdict, took time.Duration) {
	f, g := w.flow, w.g
	if w.t == nil {
		w.t = f.addTask(w.e, g)
		w.t.cleared = true
	}
	t := w.t
	over := f.ctx.Err() != nil
	if over {
		f.end(context.Cause(f.ctx)) // before keep makes room for another record
	}
	f.keep(w.e, f.opts.Policy == Park)
	if over {
		// A cut-off call says nothing about the record or its route.
		w.settled(skipped, nil)
		w.endTrace(f.unfinished(), took, v.err)
		w.handled(g.route, f.unfinished(), took, v.err)
		return
	}
	h := w.settled(v.kind, v.err)
	now := time.Now()

	f.mu.Lock()
	h.letters, h.tries, h.expires = f.opts.DeadLetter != nil, t.tries, t.expires
	a := decide(h, v.kind, v.after, now)
	t.failure.Attempts++
	t.note(v.err, now)
	t.failed, t.refused, t.took = v.kind == failed, v.kind == overloaded, took
	if v.rest != nil {
		t.handler = v.rest
	}
	how := f.unfinished()
	switch {
	case a.park && f.opts.DeadLetter != nil:
		t.doom()
		t.poison = a.poison
		how = Parked
	case f.opts.Policy == Stop:
		f.stopAt(t)
	case v.kind == permanent:
		t.state, how = frozen, Stopped
	default:
		t.tries++
		t.doomed, t.when = a.last, a.at
		if a.at.IsZero() {
			t.when = now.Add(jittered(a.within))
		}
	}
	f.mu.Unlock()
	w.endTrace(how, took, v.err)
	switch how {
	case Parked: // pass parks the record and calls the hook
		return
	case Stopped:
		if f.opts.Policy == Park {
			f.frozen(w.context(), t)
		}
	case Retried:
		f.failing(w.context(), t)
	}
	w.handled(g.route, how, took, v.err)
}

// failing logs that t will be retried, at most once a second per route. A broken
// sink must not fill the log.
func (f *Flow) failing(ctx context.Context, t *task) {
	if untold, ok := t.gate.tell(time.Now()); ok {
		f.opts.Logger.WarnContext(ctx, "record failed: will be tried again", append(recordAttrs(t), "unlogged", untold)...)
	}
}

// unfinished is the Result of a call whose record will be handled again.
func (f *Flow) unfinished() Result {
	if f.opts.Policy == Stop {
		return Stopped
	}
	return Retried
}

// again resumes a task that waited.
func (w *worker) again(t *task) {
	if t.doomed { // pass parks it
		t.when = time.Time{}
		return
	}
	w.g, w.call = t.gate, t.call
	if w.flow.opts.ParkItem && !t.cleared && !w.free(t.gate) || w.e.ord >= w.flow.limit.Load() { // stopped meanwhile
		w.notCalled()
		return
	}
	w.ended(w.invoke(t.handler))
}
