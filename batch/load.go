package batch

import (
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/backoff"
)

const (
	cutTo      = 0.7 // of the commits that ran when one was refused for load
	firstPause = 50 * time.Millisecond
	mostPause  = 4 * time.Second
)

// load learns how many commits at a time their service bears: additive increase,
// multiplicative decrease. A service that refuses even single ones gets pauses
// between them. What waits meanwhile fills the commits.
type load struct {
	allowed  float64 // commits at a time
	cuts     int     // a commit that began before the last cut says nothing of the limit now
	refusals int     // in a row, at one commit at a time
	until    time.Time
	wake     *time.Timer // at until
}

// ended notes how one of running commits ended that began after so many cuts;
// most is Options.InFlight.
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

// slots is how many commits may run now. When that changes by itself, dispatch
// is called again. mu is held.
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
	for _, err := range errs {
		if err != nil && sluice.IsOverloaded(err) {
			return true
		}
	}
	return false
}
