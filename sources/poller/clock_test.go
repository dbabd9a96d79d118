package poller

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// A clock that is slow makes a trimmed beginning look young. The loss is told
// all the same, by the service's Date.
func TestALossUnderASlowClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newOrdersStream(t)
		w.put(1)
		w.roll()
		w.run(t, w.options(), time.Second)
		want(t, "handled", w.handled(), "a1")
		w.put(2)
		pass(12 * time.Hour)
		w.put(1)
		pass(10*time.Hour + 50*time.Minute)
		w.Advance(90 * time.Minute) // our clock says 22 h 50 min, the service's 24 h 20 min
		w.run(t, w.options(), time.Minute)
		want(t, "handled", w.handled(), "b4")
		want(t, "gaps", w.gaps(t), "b before")
	})
}

// A shard that was ours and is no more is a gap, also where a slow clock says
// that only what came before a start at LATEST can be gone.
func TestAGoneShardUnderASlowClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newOrdersStream(t)
		w.put(1)
		pass(time.Minute)
		o := w.options()
		o.Start = Latest
		w.run(t, o, time.Minute)
		w.put(1)
		w.roll()
		pass(23 * time.Hour)
		w.Advance(2 * time.Hour)
		w.put(1)
		w.run(t, o, time.Minute)
		want(t, "handled", w.handled(), "b3")
		want(t, "gaps", w.gaps(t), "a gone")
	})
}

// behind is a service whose clock is behind ours, which is fast.
type behind struct {
	*stub
	by time.Duration
}

func (b behind) config() aws.Config {
	c := b.stub.config()
	c.HTTPClient = &http.Client{Transport: b}
	return c
}

func (b behind) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.stub.RoundTrip(req)
	if err == nil {
		res.Header.Set("Date", time.Now().Add(-b.by).UTC().Format(http.TimeFormat))
	}
	return res, err
}

// A clock that is fast makes records of before a start at LATEST look like
// lost ones of after it. No gap is told that is none.
func TestNoLossUnderAFastClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const by = time.Hour
		s := behind{newStub(), by}
		sh := &stubShard{id: fmt.Sprintf("shardId-%020d-a", time.Now().Add(-by-10*time.Hour).UnixMilli())}
		s.table("orders", sh)
		s.put(sh, "before")
		store := state.NewMemory()
		var got sink
		o := slowly(testOptions(store, "orders"))
		o.Start = Latest
		r := start(t, s, got.handle, o)
		pass(time.Second)
		r.mustEnd()
		pass(23*time.Hour + 30*time.Minute)
		s.with(func() { sh.trimmed = 1 })
		s.stub.mu.Lock()
		sh.records = append(sh.records, stubRecord{stubBase + "2", "after", time.Now().Add(-by)})
		s.stub.mu.Unlock()
		r = start(t, s, got.handle, o)
		pass(time.Minute)
		r.unready("")
		r.mustEnd()
		if n := len(got.got); n != 1 {
			t.Errorf("handled %v, want the record of after the start", got.all())
		}
	})
}

// The lag is by the clock that dates the records.
func TestLagUnderAFastClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const by = time.Hour
		s := behind{newStub(), by}
		sh := &stubShard{id: fmt.Sprintf("shardId-%020d-a", time.Now().Add(-by-time.Hour).UnixMilli())}
		s.table("orders", sh)
		s.stub.mu.Lock()
		sh.records = append(sh.records, stubRecord{stubBase + "1", "a", time.Now().Add(-by)})
		s.stub.mu.Unlock()
		held := make(chan struct{})
		r := start(t, s, func(context.Context, *sluice.Record) error { <-held; return nil }, testOptions(state.NewMemory(), "orders"))
		pass(10 * time.Minute)
		if lag := r.p.Lag(); lag < 9*time.Minute || lag > 11*time.Minute {
			t.Errorf("the lag of a record that waits for 10 minutes is %v", lag)
		}
		close(held)
		pass(time.Minute)
		if lag := r.p.Lag(); lag > 10*time.Second {
			t.Errorf("the lag of an idle shard is %v", lag)
		}
		r.mustEnd()
	})
}
