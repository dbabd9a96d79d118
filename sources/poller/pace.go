package poller

import (
	"math/rand/v2"
	"time"
)

const (
	busyFor    = time.Minute      // a shard with a record this recently is busy
	slowdown   = 1.25             // of the interval, each poll of an idle shard
	maxSpacing = time.Second      // between polls of a throttled shard with a backlog
	minSpacing = time.Second / 20 // after the first throttled call
	speedup    = time.Second / 100

	firstRetry = 100 * time.Millisecond
	lastRetry  = 20 * time.Second
	slowRetry  = 30 * time.Second // where only people can help
)

// pace decides when a shard is polled next. It is used by one goroutine.
type pace struct {
	busy, idle time.Duration

	interval   time.Duration // now
	lastRecord time.Time
	spacing    time.Duration // between calls at least; raised by throttling
}

func newPace(busy, idle time.Duration) *pace {
	return &pace{busy: busy, idle: idle, interval: busy, lastRecord: time.Now()}
}

// answered notes a good answer to a call made at start and returns how long to
// wait before the next. behind says that there is more to read at once.
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

// throttled notes that the service asks for fewer calls.
func (p *pace) throttled() { p.spacing = min(max(2*p.spacing, minSpacing), maxSpacing) }

// backoff is exponential with full jitter. Its zero value is ready.
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
