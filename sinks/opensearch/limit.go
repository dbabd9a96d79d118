package opensearch

import (
	"context"
	"slices"
	"sync"
	"time"
)

// limit bounds the requests at a time to what the cluster bears: each success
// raises it a little, each sign of overload lowers it by a third (AIMD). Signs
// are refusals for load, and requests that take much longer than others did.
type limit struct {
	max     int
	changed func(slots int) // is told how many commits may run; nil: nobody is

	mu      sync.Mutex
	pausing int     // commits between two requests of theirs
	allowed float64 // 1 to max
	running int
	queue   []chan struct{}
	usual   time.Duration // of a request, averaged
	cut     time.Time     // when it was last lowered
}

const (
	muchLonger = 4           // than usual
	notSlow    = time.Second // is no sign of overload, whatever is usual
	weight     = 16          // of the past in the average
)

func newLimit(n int) *limit { return &limit{max: n, allowed: float64(n)} }

// enter waits for a place; leave gives it back.
func (l *limit) enter(ctx context.Context) error {
	l.mu.Lock()
	if len(l.queue) == 0 && l.running < int(l.allowed) {
		l.running++
		l.mu.Unlock()
		return nil
	}
	w := make(chan struct{})
	l.queue = append(l.queue, w)
	l.mu.Unlock()
	select {
	case <-w:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, w); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	} else {
		l.running-- // it was let in meanwhile
	}
	l.admit()
	return context.Cause(ctx)
}

// leave tells how a request went that began at start, and returns the limit
// from now on.
func (l *limit) leave(start time.Time, overloaded bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	took := time.Since(start)
	slow := l.usual > 0 && took > notSlow && took > muchLonger*l.usual
	switch {
	case !overloaded && !slow:
		l.allowed = min(l.allowed+1/(2*l.allowed), float64(l.max))
	case !start.Before(l.cut): // else the one that lowered it ran beside this one
		l.allowed = max(l.allowed*2/3, 1)
		l.cut = time.Now()
	}
	if l.usual == 0 {
		l.usual = took
	}
	l.usual += (took - l.usual) / weight
	l.running--
	l.admit()
	l.tell()
	return int(l.allowed)
}

// pause notes a commit that waits before its next request, until the function
// that it returns is called. Another may run meanwhile.
func (l *limit) pause() (end func()) {
	count := func(n int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pausing += n
		l.tell()
	}
	count(1)
	return func() { count(-1) }
}

// tell keeps commits from beginning that would only wait here: their items
// would be cut off from those that come meanwhile.
func (l *limit) tell() {
	if l.changed != nil {
		l.changed(int(l.allowed) + l.pausing)
	}
}

func (l *limit) admit() {
	for len(l.queue) > 0 && l.running < int(l.allowed) {
		l.running++
		close(l.queue[0])
		l.queue = slices.Delete(l.queue, 0, 1)
	}
}
