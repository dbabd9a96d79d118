package flow

import (
	"context"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/backoff"
)

// Retries of a failing dead letter store.
const (
	parkBackoff    = 100 * time.Millisecond
	maxParkBackoff = 30 * time.Second
)

// itemRoute is a parked lane of one route; an empty route is all routes.
type itemRoute struct {
	hash  uint64
	route string
}

// condemn fails a record that could not be decoded or matched.
func (w *worker) condemn(err error) {
	f := w.flow
	t := f.addTask(w.e, nil)
	f.keep(w.e, true)
	f.mu.Lock()
	t.note(err, time.Now())
	switch {
	case f.opts.DeadLetter != nil: // pass parks it, so that a panic there gets its own error
		t.doomed = true
	case f.opts.Policy == Stop:
		f.stopAt(t)
	default:
		t.state = frozen
	}
	f.mu.Unlock()
	if t.doomed {
		w.endTrace(Parked, 0, err)
		return
	}
	w.endTrace(Stopped, 0, err)
	if f.opts.Policy == Park {
		f.frozen(w.context(), t)
	}
	w.handled(nil, Stopped, 0, err)
}

// frozen reports that t's record holds its lane for good. The record no longer
// waits for its route.
func (f *Flow) frozen(ctx context.Context, t *task) {
	f.mu.Lock()
	moved := f.leaveGate(t, true, false)
	f.mu.Unlock()
	if moved {
		f.announce(t.gate)
	}
	f.opts.Logger.ErrorContext(ctx, "record failed for good and holds its item: configure a dead letter", recordAttrs(t)...)
}

// park sends t's record to the dead letters.
func (w *worker) park(t *task) {
	f, e := w.flow, w.e
	w.t, w.g = t, t.gate
	w.enter(t.route())
	w.phase = parking
	ctx := w.ctx
	if trace := w.traced(); trace != nil {
		ctx = trace.Park(ctx, e.rec, t.failure.Route, f.letterID(t))
		w.called = ctx
	}
	err := f.opts.DeadLetter.Park(ctx, e.rec, t.failure)
	w.phase = ours
	w.returned()
	if err != nil {
		w.parkFailed(t, err)
		return
	}
	if f.opts.ParkItem && f.holder == nil && !e.alone {
		f.mu.Lock()
		f.parked[itemRoute{e.hash, t.failure.Route}] = struct{}{}
		f.mu.Unlock()
	}
	f.finishTask(t, true, t.poison)
	if t.gate != nil && !t.byHand { // a manual decision is not a finding of the gate
		t.gate.parked()
	}
	w.endTrace(Parked, 0, t.failure.Last)
	if f.opts.Policy == Park && !t.behind {
		attrs := recordAttrs(t)
		if id := f.letterID(t); id != "" {
			attrs = append(attrs, "deadLetter", id)
		}
		f.opts.Logger.WarnContext(ctx, "record parked as a dead letter", attrs...)
	}
	w.handled(t.route(), Parked, t.took, t.failure.Last)
}

// letterID is the id of t's dead letter, or "".
func (f *Flow) letterID(t *task) string {
	if n, ok := f.opts.DeadLetter.(namer); ok {
		return n.ID(t.e.rec, t.failure.Route)
	}
	return ""
}

// parkFailed schedules another try at the dead letters.
func (w *worker) parkFailed(t *task, err error) {
	f := w.flow
	w.endTrace(f.unfinished(), 0, err)
	f.mu.Lock()
	if cut := f.ctx.Err() != nil; cut || f.opts.Policy == Stop {
		t.note(err, time.Now())
		if cut {
			f.stop(0, context.Cause(f.ctx))
		} else {
			f.stopAt(t)
		}
		f.mu.Unlock()
		if !cut {
			w.refused(t, err)
		}
		w.handled(t.route(), f.unfinished(), t.took, err)
		return
	}
	t.when = time.Now().Add(jittered(backoff.Doubled(parkBackoff, maxParkBackoff, t.tries)))
	t.tries++
	untold, tell := f.unparked.tell(time.Now())
	attrs := recordAttrs(t)
	f.mu.Unlock()
	if tell {
		f.opts.Logger.ErrorContext(w.context(), "dead letters failed: will be tried again", append(attrs, "deadLetterError", err, "unlogged", untold)...)
	}
	w.refused(t, err)
}

// refused reports that the dead letters did not take t's record.
func (w *worker) refused(t *task, err error) {
	if h := w.flow.opts.Hooks.ParkFailed; h != nil && !w.flow.dead.Load() {
		h(w.e.rec, t.route(), err)
	}
}

// free reports whether no earlier change of the item is parked for the route of g.
// Otherwise the record must be parked behind it. A redriven record comes from the
// dead letters itself.
func (w *worker) free(g *gate) bool {
	f, e := w.flow, w.e
	if e.alone || e.rec.Origin == sluice.Redriven {
		return true
	}
	held, err := w.holds(g)
	t := w.t
	if !held && err == nil {
		if t != nil {
			t.cleared = true
		}
		return true
	}
	if t == nil {
		t = f.addTask(e, g)
	}
	f.keep(e, true)
	if err != nil {
		w.parkFailed(t, err)
		return false
	}
	f.mu.Lock()
	t.note(errHeld, time.Now())
	t.behind = true
	t.doom()
	f.mu.Unlock()
	return false
}

func (w *worker) holds(g *gate) (held bool, err error) {
	f, e := w.flow, w.e
	if f.holder != nil {
		w.phase = asking
		held, err = f.holder.Holds(w.ctx, e.rec, g.route.Name)
		w.phase = ours
		return held, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, all := f.parked[itemRoute{e.hash, ""}]
	_, one := f.parked[itemRoute{e.hash, g.route.Name}]
	return all || one, nil
}

// recordAttrs identifies t's record in the log: its position if known, never its
// contents.
func recordAttrs(t *task) []any {
	rec := t.e.rec
	attrs := []any{"route", t.failure.Route, "table", rec.Table}
	if rec.ShardID != "" {
		attrs = append(attrs, "shard", rec.ShardID)
	}
	if rec.Sequence != "" {
		attrs = append(attrs, "sequence", string(rec.Sequence))
	}
	return append(attrs, "event", rec.EventID, "attempts", t.failure.Attempts, "error", t.failure.Last)
}
