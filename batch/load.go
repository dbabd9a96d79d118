package batch

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/outcomes"
)

const (
	cutTo      = 0.7 // factor of the running commits after a refusal for load
	firstPause = 50 * time.Millisecond
	mostPause  = 4 * time.Second
)

// load learns how many commits at a time the service can take, by additive
// increase and multiplicative decrease. If the service refuses even single
// commits, load adds pauses between them. Waiting items fill the commits.
type load struct {
	allowed  float64 // commits at a time
	cuts     int     // number of cuts: a commit that began before the last cut does not count
	refusals int     // consecutive, at one commit at a time
	until    time.Time
	wake     *time.Timer // at until
}

// ended notes the result of a commit. began is load.cuts at its start, running the
// commits at a time, most is Options.InFlight.
func (l *load) ended(began, running, most int, refused bool, now time.Time) {
	switch {
	case !refused:
		l.refusals = 0
		l.allowed = min(float64(most), l.allowed+1/(4*l.allowed))
	case began != l.cuts:
	default:
		if l.allowed < 2 {
			l.refusals++
			l.until = now.Add(backoff.Full(firstPause, mostPause, l.refusals))
		}
		l.cuts++
		l.allowed = max(1, cutTo*min(l.allowed, float64(running)))
	}
}

// slots is the number of commits that may run now. If it changes over time,
// dispatch runs again. mu is held.
func (b *Batcher[T]) slots() int {
	l := &b.load
	wait := time.Until(l.until)
	if l.until.IsZero() || wait <= 0 {
		return min(b.most, int(l.allowed))
	}
	if l.wake == nil {
		l.wake = time.AfterFunc(wait, b.wake)
	} else {
		l.wake.Reset(wait)
	}
	return 0
}

func (b *Batcher[T]) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dispatch()
}

// refused reports whether an item was refused for load.
func refused(errs []error) bool {
	return slices.ContainsFunc(errs, func(err error) bool { return err != nil && outcomes.IsOverloaded(err) })
}
