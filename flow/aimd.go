package flow

import (
	"time"

	"github.com/sluicehq/sluice/internal/backoff"
)

// How a gate learns a route's concurrency: additive increase, multiplicative
// decrease (AIMD), as in TCP.
const (
	cutTo       = 0.7             // factor of the calls that ran at a refusal
	maxPause    = 4 * time.Second // longest pause between calls of a route that refuses even single calls, and between probes
	nearCeiling = 8               // factor by which growth slows near the last refusal
	forgetAfter = time.Minute     // without a refusal: an unused limit is dropped
	trialCalls  = 32              // calls, and two rounds, to measure the failure ratio
	trialShare  = 0.25            // share of failures that starts a trial with fewer calls at a time
	trialPeak   = 4               // calls at a time below which no trial starts
	trialGain   = 0.75            // a cut helped if it lowers failures per success by this factor
	trialRest   = time.Minute     // pause after a trial that did not help
	trialAtMost = trialRest / 2   // longest trial: one with too few calls proves nothing
	smoothing   = 0.5             // keeps failures per success finite
)

// limiter learns how many calls of a route may run at a time. Refusals for load
// lower the limit. Plain failures lower it on trial: if the failure ratio stays as
// high with fewer calls at a time, load is not the cause, and the trial ends.
type limiter struct {
	limit   float64 // 0: no limit
	ceiling float64 // calls at the last refusal, near which the limit grows slowly; 0: unknown
	doubles bool    // after an outage each success adds a call; later each round does
	cuts    int     // number of cuts: a call that began before the last cut does not count
	cutAt   time.Time

	refusals   int // in a row, at one call at a time
	pauseUntil time.Time

	// Since the last evaluation.
	ok, bad, peak int

	trial struct {
		on     bool
		before float64 // the limit
		ratio  float64 // failures per success
		notYet time.Time
	}
}

// restart starts over with n calls at a time.
func (l *limiter) restart(n int) {
	*l = limiter{limit: float64(n), doubles: true, cuts: l.cuts + 1}
}

// succeeded notes a success while load calls ran. wanted: others wait.
func (l *limiter) succeeded(began, load int, wanted bool, now time.Time) {
	l.refusals = 0
	l.count(began, load, true, now)
	l.grow(load, wanted, now)
}

// grow raises the limit after a call that was not refused, whether or not the
// handler had work to do.
func (l *limiter) grow(load int, wanted bool, now time.Time) {
	switch {
	case l.limit == 0:
	case !wanted && load < int(l.limit):
		if now.Sub(l.cutAt) > forgetAfter {
			l.limit, l.doubles = 0, false
		}
	case l.trial.on: // keep the limit steady during a trial
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

// refused notes a refusal for load while load calls ran.
func (l *limiter) refused(began, load int, base time.Duration, now time.Time) {
	if began != l.cuts {
		return
	}
	if l.limit > 0 && l.limit < 2 {
		l.pauseUntil = now.Add(jittered(backoff.Doubled(base, maxPause, l.refusals)))
		l.refusals++
	}
	l.trial.on, l.ceiling = false, float64(load)
	l.cut(cutTo*float64(load), now)
}

// failed notes a failure while load calls ran.
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

// takeBack ends a trial that did not help and restores the limit.
func (l *limiter) takeBack(now time.Time) {
	l.limit, l.ceiling = l.trial.before, 0
	l.trial.on, l.trial.notYet = false, now.Add(trialRest)
}

// count counts the result of a call. After enough calls it ends or starts a trial.
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
	if all < max(trialCalls, 2*l.peak) { // whole rounds: failing calls may be quicker or slower
		return
	}
	bad, peak := float64(l.bad), l.peak
	ratio := (bad + smoothing) / (float64(l.ok) + smoothing)
	l.ok, l.bad, l.peak = 0, 0, 0
	if t := &l.trial; t.on {
		t.on = false
		if ratio > trialGain*t.ratio { // load is not the cause
			l.takeBack(now)
		}
	}
	if t := &l.trial; bad >= trialShare*float64(all) && peak >= trialPeak && !now.Before(t.notYet) {
		t.on, t.before, t.ratio, l.ceiling = true, l.limit, ratio, float64(peak)
		l.cut(float64(peak)/2, now)
	}
}
