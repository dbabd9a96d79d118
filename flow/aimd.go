package flow

import (
	"math/rand/v2"
	"time"
)

// How a route's concurrency is learned: additive increase, multiplicative
// decrease, as TCP does it.
const (
	cutTo       = 0.7             // of the calls that ran when one was refused
	maxPause    = 4 * time.Second // between calls of a route that refuses even single ones, and between probes
	nearCeiling = 8               // times slower does the limit grow where calls were refused before
	forgetAfter = time.Minute     // without a refusal: a limit that binds nobody is forgotten
	trialCalls  = 32              // calls, and two rounds, by which a share of failures is measured
	trialShare  = 0.25            // of failures: worth a trial with fewer calls at a time
	trialPeak   = 4               // calls at a time below which there is no trial
	trialGain   = 0.75            // failures per success after a cut that helped, of those before
	trialRest   = time.Minute     // between a trial that did not help and the next
	trialAtMost = trialRest / 2   // a trial lasts: one that too few calls can end has shown nothing
	smoothing   = 0.5             // keeps failures per success finite
)

// limiter learns how many calls of a route may run at a time. Refusals that
// say that they are for load lower it. Plain failures lower it on trial: when
// as large a part of the calls fails with fewer of them at a time, load is not
// the reason and the cut is taken back.
type limiter struct {
	limit   float64 // 0: none is learned
	ceiling float64 // a call was refused when so many ran: near it the limit grows slowly; 0: not known
	doubles bool    // after an outage each success adds a call; later each round does
	cuts    int     // a call that began before the last cut says nothing of the limit now
	cutAt   time.Time

	refusals   int // in a row, at one call at a time
	pauseUntil time.Time

	// Of the calls that ended since the last look at them.
	ok, bad, peak int

	trial struct {
		on     bool
		before float64 // the limit
		ratio  float64 // failures per success
		notYet time.Time
	}
}

// restart begins anew with n calls at a time.
func (l *limiter) restart(n int) {
	*l = limiter{limit: float64(n), doubles: true, cuts: l.cuts + 1}
}

// succeeded notes a success among load calls; wanted says that others wait.
func (l *limiter) succeeded(began, load int, wanted bool, now time.Time) {
	l.refusals = 0
	l.count(began, load, true, now)
	l.grow(load, wanted, now)
}

// grow raises the limit after a call that was not refused. One that had nothing
// to do counts, too: where few calls do, more may run at a time.
func (l *limiter) grow(load int, wanted bool, now time.Time) {
	switch {
	case l.limit == 0:
	case !wanted && load < int(l.limit):
		if now.Sub(l.cutAt) > forgetAfter {
			l.limit, l.doubles = 0, false
		}
	case l.trial.on: // what it shows must not change meanwhile
	case l.doubles:
		l.limit++
	case l.limit >= l.ceiling:
		l.ceiling = 0
		l.limit += 1 / l.limit
	case l.limit+1 >= l.ceiling:
		l.limit += 1 / (nearCeiling * l.limit)
	default:
		l.limit += 1 / l.limit
	}
}

// refused notes that one of load calls was refused for load.
func (l *limiter) refused(began, load int, base time.Duration, now time.Time) {
	if began != l.cuts {
		return
	}
	if l.limit > 0 && l.limit < 2 {
		pause := doubled(base, maxPause, l.refusals)
		l.refusals++
		l.pauseUntil = now.Add(rand.N(pause + 1))
	}
	l.trial.on, l.ceiling = false, float64(load)
	l.cut(cutTo*float64(load), now)
}

// failed notes that one of load calls failed, for whatever reason.
func (l *limiter) failed(began, load int, now time.Time) {
	l.count(began, load, false, now)
}

func (l *limiter) cut(limit float64, now time.Time) {
	if l.limit > 0 {
		limit = min(limit, cutTo*l.limit)
	}
	l.limit, l.doubles, l.cutAt = max(1, limit), false, now
	l.cuts++
	l.ok, l.bad, l.peak = 0, 0, 0
}

// takeBack ends a trial that did not help.
func (l *limiter) takeBack(now time.Time) {
	l.limit, l.ceiling = l.trial.before, 0
	l.trial.on, l.trial.notYet = false, now.Add(trialRest)
}

// count adds up how calls end. When there are enough, it ends a trial or
// begins one.
func (l *limiter) count(began, load int, ok bool, now time.Time) {
	if began != l.cuts {
		return
	}
	if ok {
		l.ok++
	} else {
		l.bad++
	}
	l.peak = max(l.peak, load)
	all := l.ok + l.bad
	if all < max(trialCalls, 2*l.peak) { // whole rounds: those that fail may be quicker, or slower
		return
	}
	bad, peak := float64(l.bad), l.peak
	ratio := (bad + smoothing) / (float64(l.ok) + smoothing)
	l.ok, l.bad, l.peak = 0, 0, 0
	if t := &l.trial; t.on {
		t.on = false
		if ratio > trialGain*t.ratio { // load is not why they fail
			l.takeBack(now)
		}
	}
	if t := &l.trial; bad >= trialShare*float64(all) && peak >= trialPeak && !now.Before(t.notYet) {
		t.on, t.before, t.ratio, l.ceiling = true, l.limit, ratio, float64(peak)
		l.cut(float64(peak)/2, now)
	}
}
