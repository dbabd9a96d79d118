package opensearch

import (
	"context"
	"slices"
	"sync"
	"time"
)

// limit limits concurrent requests to what the cluster can take. Each success
// raises the limit a little; each sign of overload lowers it by a third (AIMD).
// Signs are refusals for load, and requests that take much longer than usual.
type limit struct {
	max     int
	changed func(slots int) // called with the number of commits that may run; may be nil

	mu      sync.Mutex
	pausing int     // commits between two of their requests
	allowed float64 // 1 to max
	running int
	queue   []chan struct{}
	usual   time.Duration // average duration of a request
	cut     time.Time     // last time the limit was lowered
}

const (
	muchLonger = 4           // factor over usual
	notSlow    = time.Second // a faster request is never a sign of overload
	weight     = 16          // of the past in the average
)

func newLimit(n int) *limit { return &limit{max: n, allowed: float64(n)} }

// enter waits for a slot; leave gives it back.
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
		l.running-- // admitted meanwhile
	}
	l.admit()
	return context.Cause(ctx)
}

// leave notes the result of a request that began at start.
func (l *limit) leave(start time.Time, overloaded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	took := time.Since(start)
	slow := l.usual > 0 && took > notSlow && took > muchLonger*l.usual
	switch {
	case !overloaded && !slow:
		l.allowed = min(l.allowed+1/(2*l.allowed), float64(l.max))
	case !start.Before(l.cut): // else a concurrent request has lowered the limit
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
}

// pause notes that a commit waits before its next request, until it calls end.
// Another may run meanwhile.
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

// tell reports the slots, so that no commit starts only to wait here: its items
// would miss later callers.
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
