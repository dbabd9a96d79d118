package poller

import (
	"testing"
	"time"
)

// A busy shard is polled at once, an idle one more and more slowly.
func TestPace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPace(200*time.Millisecond, time.Second)
		poll := func(records int, behind bool) time.Duration {
			t.Helper()
			return p.answered(time.Now(), records, behind)
		}
		if d := poll(1000, true); d != 0 {
			t.Errorf("after a full page: %v, want at once", d)
		}
		if d := poll(0, true); d != 20*time.Millisecond {
			t.Errorf("after an empty page with more behind it: %v, want a tenth of the busy interval", d)
		}
		if d := poll(3, false); d != 200*time.Millisecond {
			t.Errorf("busy: %v", d)
		}
		start := time.Now()
		time.Sleep(150 * time.Millisecond)
		if d := p.answered(start, 1, false); d != 50*time.Millisecond {
			t.Errorf("after a call of 150 ms: %v, want what is left of the interval", d)
		}
		time.Sleep(59 * time.Second)
		if d := poll(0, false); d != 200*time.Millisecond {
			t.Errorf("59 s after the last record: %v", d)
		}
		time.Sleep(time.Second)
		last := 200 * time.Millisecond
		for range 7 {
			d := poll(0, false)
			if d <= last {
				t.Fatalf("idle: %v after %v, want slower", d, last)
			}
			last = d
		}
		for range 10 {
			last = poll(0, false)
		}
		if last != time.Second {
			t.Errorf("idle for long: %v, want 1 s", last)
		}
		if d := poll(1, false); d != 200*time.Millisecond {
			t.Errorf("busy again: %v", d)
		}
		p.throttled()
		p.throttled()
		if d := poll(1000, true); d < 50*time.Millisecond {
			t.Errorf("throttled: %v after a full page, want a pause", d)
		}
		for range 100 {
			last = poll(1000, true)
		}
		if last != 0 {
			t.Errorf("long after being throttled: %v, want at once", last)
		}
	})
}

func TestBackoff(t *testing.T) {
	var b backoff
	top := time.Duration(0)
	for i := range 200 {
		d := b.next(transient)
		if limit := firstRetry << min(i, 10); d < 0 || d > min(limit, lastRetry) {
			t.Fatalf("try %d: %v", i+1, d)
		}
		top = max(top, d)
	}
	if top < lastRetry/2 {
		t.Errorf("the longest of 200 delays is %v, want them spread up to %v", top, lastRetry)
	}
	if d := b.next(refused); d < slowRetry/2 || d > slowRetry {
		t.Errorf("refused: %v", d)
	}
	b.reset()
	if d := b.next(transient); d > firstRetry {
		t.Errorf("after a success: %v", d)
	}
}
