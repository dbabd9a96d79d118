//go:build integration || long

package poller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
)

// What fails for hours is given up by its flow before the records of the next
// stream expire, and only then the next stream is begun.
func TestANewStreamOutlivesAnOutage(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	bubble(t, func(t *testing.T) {
		s := newStub()
		old := s.enable("orders", s.filled("a", 2))
		var got, letters sink
		fail := func(ctx context.Context, rec *sluice.Record) error {
			if rec.ShardID == "a" {
				return errors.New("no answer")
			}
			return got.handle(ctx, rec)
		}
		o := slowly(testOptions(state.NewMemory(), "orders"))
		o.Flow.DeadLetter = &letters
		r := start(t, s, fail, o)
		pass(time.Hour)
		s.disable(old)
		s.enable("orders", s.filled("b", 2))
		pass(18 * time.Hour)
		want(t, "handled", got.all()+letters.all(), "")
		pass(2 * time.Hour)
		want(t, "parked", letters.all(), "a/1")
		pass(2 * time.Hour) // a/2 is called now, and has half of the time that is left
		want(t, "parked", letters.all(), "a/1 a/2")
		want(t, "handled", got.all(), "b/1 b/2")
		r.mustEnd()
	})
}

// What nothing can end does not hold the next stream back until its records
// expire; a shard that was told to stand still does.
func TestANewStreamDoesNotWaitForEver(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, how := range []string{"a handler hangs", "halted at a gap"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), state.NewMemory()
				a := s.filled("a", 3)
				old := s.enable("orders", a)
				got := &gate{shard: "a", open: make(chan struct{})}
				o := slowly(testOptions(store, "orders"))
				if how == "halted at a gap" {
					close(got.open)
					o.Gaps = Halt
				}
				r := start(t, s, got.handle, o)
				pass(time.Second)
				if o.Gaps == Halt {
					s.with(func() { a.trimmed = 4; a.records = append(a.records, a.records...) })
				}
				pass(time.Minute)
				s.disable(old)
				renewed := s.enable("orders", s.filled("b", 1))
				pass(21 * time.Hour)
				want(t, "start of the new one", storedStart(t, store, renewed.arn), "")
				pass(2 * time.Hour)
				if o.Gaps == Halt {
					want(t, "start of the new one", storedStart(t, store, renewed.arn), "")
					r.unready("halted")
				} else {
					want(t, "handled", got.all(), "b/1")
					r.unready("is not settled, and the next one is read beside it")
					close(got.open)
					pass(time.Minute)
					want(t, "handled", got.all(), "b/1 a/1 a/2 a/3")
					r.acknowledge()
					r.unready("")
				}
				r.mustEnd()
			})
		})
	}
}
