package poller

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/state"
)

// A gap that had an end has none any more when the shard itself goes before
// anything behind the gap was settled; that more is lost is told.
func TestAShardGoesBehindItsGap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := state.NewMemory()
		s := trimmedShard(t, store)
		failing := func(context.Context, *sluice.Record) error { return errors.New("not now") }
		r := start(t, s, failing, withBox(store, "orders"))
		pass(time.Minute)
		want(t, "dead letters", parked(t, store), "a/2-5")
		r.mustEnd()
		s.with(func() {
			st := s.streams[stubARN("orders")]
			st.shards = []*stubShard{{id: "b", parent: "a"}}
		})
		r = start(t, s, failing, withBox(store, "orders"))
		pass(time.Minute)
		want(t, "dead letters", parked(t, store), "a/2-!")
		want(t, "events", r.log(), "started a, gone a, gap a 2, finished a, started b")
		r.mustEnd()
		r = start(t, s, failing, withBox(store, "orders"))
		pass(time.Minute)
		want(t, "events after a restart", r.log(), "started b")
		r.mustEnd()
	})
}

// Of a stream that was begun, but of which no shard was, everything is lost
// when the service has forgotten it. That is told once.
func TestARestartBehindAStreamOfWhichNothingWasRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		first := s.enable("orders", s.filled("a", 1))
		m := &mortal{Memory: store, left: 1} // killed at its first claim
		var got sink
		r := start(t, s, got.handle, testOptions(m, "orders"))
		pass(time.Second)
		_ = r.end()
		want(t, "start", storedStart(t, store, first.arn), TrimHorizon)
		want(t, "positions", storedOf(t, store, first.arn), "")
		s.disable(first)
		pass(25 * time.Hour)
		s.with(func() { delete(s.streams, first.arn) })
		s.enable("orders", s.filled("b", 1))
		for range 2 {
			r = start(t, s, got.handle, withBox(store, "orders"))
			pass(time.Minute)
			r.unready(first.arn + " was not read")
			r.mustEnd()
		}
		r = start(t, s, got.handle, withBox(store, "orders"))
		r.acknowledge()
		r.mustEnd()
		r = start(t, s, got.handle, withBox(store, "orders"))
		pass(time.Minute)
		r.unready("")
		r.mustEnd()
		want(t, "handled", got.all(), "b/1")
	})
}

// begunOnly is a table whose stream was begun, but no shard of it: the process was
// killed at its first claim.
func begunOnly(t *testing.T, store *state.Memory) (s *stub, st *stubStream) {
	t.Helper()
	s = newStub()
	st = s.enable("orders", s.filled("a", 1))
	r := start(t, s, new(sink).handle, testOptions(&mortal{Memory: store, left: 1}, "orders"))
	pass(time.Second)
	_ = r.end()
	want(t, "start", storedStart(t, store, st.arn), TrimHorizon)
	want(t, "positions", storedOf(t, store, st.arn), "")
	return s, st
}

// failing has the control plane answer with errors, the last one ever again.
func (s *stub) failing(describeStream ...string) {
	s.with(func() {
		s.fail = func(op, _ string) (e string) {
			switch {
			case op == "DescribeTable":
				return "ThrottlingException"
			case op != "DescribeStream":
				return ""
			}
			if e = describeStream[0]; len(describeStream) > 1 {
				describeStream = describeStream[1:]
			}
			return e
		}
	})
}

// That the service denies a stream once, and then cannot be asked, is no end of it.
func TestOneDenialIsNoEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := state.NewMemory()
		s, st := begunOnly(t, store)
		s.failing("ResourceNotFoundException", "ThrottlingException")
		var got sink
		r := start(t, s, got.handle, withBox(store, "orders"))
		pass(10 * time.Second)
		want(t, "gaps", parked(t, store), "")
		s.with(func() { s.fail = nil })
		pass(time.Minute)
		want(t, "handled", got.all(), "a/1")
		s.disable(st)
		s.enable("orders", s.filled("b", 1))
		pass(2 * time.Minute)
		want(t, "handled of the next stream", got.of("b"), "b/1")
		r.mustEnd()
	})
}

// A stream of which nothing was read is lost when it was replaced and is gone, also
// when it could not be listed as the process began.
func TestNothingWasReadAndNothingCanBeListed(t *testing.T) {
	for _, first := range []string{"ThrottlingException", "ResourceNotFoundException"} {
		bubble(t, func(t *testing.T) {
			store := state.NewMemory()
			s, st := begunOnly(t, store)
			s.disable(st)
			pass(25 * time.Hour)
			s.with(func() { delete(s.streams, st.arn) })
			s.enable("orders", s.filled("b", 1))
			s.failing(first, "ThrottlingException")
			var got sink
			r := start(t, s, got.handle, withBox(store, "orders"))
			pass(10 * time.Second)
			s.with(func() { s.fail = nil })
			pass(2 * time.Minute)
			r.unready(st.arn + " was not read")
			want(t, "handled after "+first, got.all(), "b/1")
			r.mustEnd()
		})
	}
}

// fragile panics when a gap's end is parked, which counts as a failure.
type fragile struct{ *deadletter.Box }

func (f fragile) ParkGap(ctx context.Context, g *sluice.Gap) error {
	if g.Before != "" {
		time.Sleep(500 * time.Millisecond)
		panic("no")
	}
	return f.Box.ParkGap(ctx, g)
}

// A shard that fails by a panic is given up when its calls have ended.
func TestAPanicWaitsForTheCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := state.NewMemory()
		s := trimmedShard(t, store)
		polls := 0
		s.fail = func(op, _ string) string {
			if op == "GetRecords" {
				if polls++; polls > 2 { // one is the start's trial
					return "linger"
				}
			}
			return ""
		}
		var got sink
		o := atDefaultPace(testOptions(store, "orders"))
		o.Flow.DeadLetter = fragile{deadletter.NewBox(store, "sluice")}
		log := &panicking{Handler: slog.DiscardHandler}
		log.at.Store(new("action=park gap"))
		o.Logger = slog.New(log)
		r := start(t, s, got.handle, o)
		pass(time.Second)
		want(t, "events while a call is under way", r.log(), "started a, gap a 2")
		pass(time.Second)
		want(t, "events", r.log(), "started a, gap a 2, failed a")
		r.mustEnd()
	})
}
