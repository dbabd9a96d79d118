package poller

import (
	"math/rand/v2"
	"time"
)

const (
	busyFor    = time.Minute      // a shard with a record this recently is busy
	slowdown   = 1.25             // growth of the interval at each poll of an idle shard
	maxSpacing = time.Second      // between polls of a throttled shard with a backlog
	minSpacing = time.Second / 20 // after the first throttled call
	speedup    = time.Second / 100

	firstRetry = 100 * time.Millisecond
	lastRetry  = 20 * time.Second
	slowRetry  = 30 * time.Second // when only a human can help
)

// pace decides when to poll a shard next. One goroutine uses it.
type pace struct {
	busy, idle time.Duration

	interval   time.Duration // current
	lastRecord time.Time
	spacing    time.Duration // least time between calls; raised by throttling
}

func newPace(busy, idle time.Duration) *pace {
	return &pace{busy: busy, idle: idle, interval: busy, lastRecord: time.Now()}
}

// answered notes a good response to a call made at start and returns the delay
// before the next call. behind: more can be read at once.
func (p *pace) answered(start time.Time, records int, behind bool) time.Duration {
	now := time.Now()
	p.spacing = max(0, p.spacing-speedup)
	if records > 0 {
		p.lastRecord = now
	}
	want := p.spacing
	switch {
	case behind && records == 0: // empty pages can precede data
		want = max(want, p.busy/10)
	case behind:
	case now.Sub(p.lastRecord) < busyFor:
		p.interval = p.busy
		want = max(want, p.interval)
	default:
		p.interval = min(time.Duration(float64(p.interval)*slowdown), p.idle)
		want = max(want, p.interval)
	}
	return max(0, want-now.Sub(start))
}

// throttled notes that the service wants fewer calls.
func (p *pace) throttled() { p.spacing = min(max(2*p.spacing, minSpacing), maxSpacing) }

// backoff is exponential with full jitter. The zero value is ready.
type backoff struct{ failures int }

// next returns the delay before the next try.
func (b *backoff) next(k kind) time.Duration {
	b.failures++
	if k == refused {
		return slowRetry/2 + rand.N(slowRetry/2)
	}
	limit := lastRetry
	if b.failures < 9 {
		limit = min(limit, firstRetry<<(b.failures-1))
	}
	return rand.N(limit)
}

// storeRetry is the delay before a call to the store is made again that has
// failed so often in a row.
func storeRetry(failures int) time.Duration {
	b := backoff{failures - 1}
	return b.next(transient)
}

func (b *backoff) reset() { b.failures = 0 }
