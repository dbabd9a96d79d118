package flow_test

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// figures are what a scenario is judged by.
type figures struct {
	records    int
	parkedGood int // that had nothing wrong
	parkedBad  int
	open       int // neither settled nor parked
	lost       int // neither settled nor parked at the trim
	last       time.Duration
	settled    time.Duration // when the last record was settled, parked ones left out
	firstPark  time.Duration
	healthy    spread // from due to settled
	affected   spread
	wait       time.Duration // the longest from a parked record's first failure to its parking
}

// spread is a distribution of latencies.
type spread struct {
	n             int
	p50, p99, max time.Duration
}

func spreadOf(ds []time.Duration) spread {
	if len(ds) == 0 {
		return spread{}
	}
	slices.Sort(ds)
	return spread{len(ds), ds[len(ds)/2], ds[len(ds)*99/100], ds[len(ds)-1]}
}

func (s spread) String() string {
	if s.n == 0 {
		return "none"
	}
	return fmt.Sprintf("p50 %v p99 %v max %v", short(s.p50), short(s.p99), short(s.max))
}

// short leaves out what nobody reads.
func short(d time.Duration) time.Duration {
	switch {
	case d > time.Minute:
		return d.Round(time.Second)
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

// end waits until all is settled, closes the flow, prints the figures, and holds what every scenario
// promises: no record is left, none is lost, no good one is parked, and the group
// reports no outage when nothing waits.
func (w *world) end() figures {
	w.t.Helper()
	late := time.NewTimer(3 * trim)
	defer late.Stop()
	for waits := true; waits && w.flow.Settled() < uint64(len(w.fates)); {
		select {
		case <-w.flow.Changed():
		case <-late.C:
			waits = false
		}
	}
	time.Sleep(time.Second)
	if s := w.group.States()[0]; !s.State.Healthy() || s.Waiting > 0 || s.Failing > 0 {
		w.t.Errorf("nothing waits, and the group still reports %+v", s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if n, err := w.flow.Close(ctx); err != nil {
		w.t.Errorf("Close after %d of %d records: %v", n, len(w.fates), err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fig := w.figures()
	if fig.parkedGood > 0 {
		w.t.Errorf("%d of %d good records parked, the first after %v; want 0", fig.parkedGood, fig.records, short(fig.firstPark))
	}
	if fig.open > 0 {
		w.t.Errorf("%d records neither settled nor parked", fig.open)
	}
	if fig.lost > 0 {
		w.t.Errorf("%d records neither settled nor parked %v after they were made", fig.lost, trim)
	}
	w.say("%d records, parked %d good %d bad, settled by %v; healthy %v; affected %v; %d requests, %d refused",
		fig.records, fig.parkedGood, fig.parkedBad, short(fig.settled), fig.healthy, fig.affected, w.requests, w.refused)
	return fig
}

func (w *world) figures() figures {
	fig := figures{records: len(w.fates)}
	var healthy, affected []time.Duration
	for _, f := range w.fates {
		bad := w.bad != nil && w.bad(f)
		if !f.settled && !f.parked {
			fig.open++
		} else {
			fig.last = max(fig.last, f.ended)
		}
		if !f.settled && !f.parked || f.ended-f.due+w.age-w.ahead > trim {
			fig.lost++
		}
		if f.settled {
			fig.settled = max(fig.settled, f.ended)
			if w.affected != nil && w.affected(f.item) {
				affected = append(affected, f.ended-f.due)
			} else {
				healthy = append(healthy, f.ended-f.due)
			}
		}
		if !f.parked {
			continue
		}
		fig.wait = max(fig.wait, f.ended-f.failed)
		if bad {
			fig.parkedBad++
			continue
		}
		if fig.parkedGood == 0 || f.ended < fig.firstPark {
			fig.firstPark = f.ended
		}
		fig.parkedGood++
	}
	fig.healthy, fig.affected = spreadOf(healthy), spreadOf(affected)
	return fig
}

// healthy is the latency of the healthy items' records which the source had from one
// time to another.
func (w *world) healthy(from, to time.Duration) spread {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ds []time.Duration
	for _, f := range w.fates {
		if f.settled && f.due >= from && f.due < to && (w.affected == nil || !w.affected(f.item)) {
			ds = append(ds, f.ended-f.due)
		}
	}
	return spreadOf(ds)
}

// caughtUp is when the last record was settled or parked that the source had
// before a time.
func (w *world) caughtUp(before time.Duration) (at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.fates {
		if f.due < before {
			at = max(at, f.ended)
		}
	}
	return at
}

// within holds that a time is at most its bound.
func (w *world) within(what string, got, most time.Duration) {
	w.t.Helper()
	w.say("%s %v of %v", what, short(got), short(most))
	if got > most {
		w.t.Errorf("%s is %v, want at most %v", what, short(got), short(most))
	}
}

// say adds to the scenario's line of figures.
func (w *world) say(format string, args ...any) {
	w.line = append(w.line, fmt.Sprintf(format, args...))
}
