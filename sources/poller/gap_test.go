package poller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/state"
)

// withBox returns options whose dead letters are in the store.
func withBox(store interface {
	state.Store
	state.Letters
}, tables ...string) Options {
	o := testOptions(store, tables...)
	o.Flow.DeadLetter = deadletter.NewBox(store, "sluice")
	return o
}

// parked returns the gaps among the dead letters, as "shard/after-before", with
// "!" where the shard is gone.
func parked(t *testing.T, l state.Letters) string {
	t.Helper()
	all, err := deadletter.NewBox(l, "sluice").Gaps(context.Background())
	if err != nil {
		t.Error(err)
	}
	var out []string
	for _, g := range all {
		s := g.ShardID + "/" + strings.TrimPrefix(string(g.After), stubBase) + "-" + strings.TrimPrefix(string(g.Before), stubBase)
		if g.Gone {
			s += "!"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// trimmedShard reads two records of shard a, and then trims four of seven.
func trimmedShard(t *testing.T, store state.Store) *stub {
	t.Helper()
	s := newStub()
	a := &stubShard{id: "a"}
	s.table("orders", a)
	s.put(a, "k", "k")
	var got sink
	r := start(t, s, got.handle, testOptions(store, "orders"))
	pass(time.Second)
	r.mustEnd()
	s.put(a, "k", "k", "k", "k", "k")
	s.with(func() { a.trimmed = 4 })
	return s
}

// A service that says without cause that a position is trimmed, and then gives
// what was read before, has none of it handled again by the same reading.
func TestTrimThatIsNoneRepeatsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		var got sink
		r := start(t, s, got.handle, withBox(store, "orders"))
		s.put(a, "k", "k")
		pass(2 * time.Second)
		refused := false
		s.with(func() {
			s.fail = func(op, _ string) string {
				if op != "GetRecords" || refused {
					return ""
				}
				refused = true
				return "TrimmedDataAccessException"
			}
		})
		pass(2 * time.Second)
		s.put(a, "k")
		pass(2 * time.Second)
		want(t, "handled", got.all(), "a/1 a/2 a/3")
		want(t, "dead letters", parked(t, store), "a/2-3")
		r.mustEnd()
		want(t, "position", stored(t, store, "orders"), "a@3")
	})
}

// A gap is a dead letter with its range. Over restarts the poller is not ready
// until the gap is acknowledged; then the gap is forgotten for good.
func TestGapIsDurable(t *testing.T) {
	for name, acknowledge := range map[string]func(t *testing.T, p *Poller, box *deadletter.Box) time.Duration{
		"by AcknowledgeGaps": func(t *testing.T, p *Poller, _ *deadletter.Box) time.Duration {
			if err := p.AcknowledgeGaps(t.Context(), p.Gaps()...); err != nil {
				t.Error(err)
			}
			return 0
		},
		"by deleting the dead letter": func(t *testing.T, _ *Poller, box *deadletter.Box) time.Duration {
			entries, _, err := box.List(t.Context(), "", 10)
			if err != nil || len(entries) != 1 || box.Delete(t.Context(), entries[0].ID) != nil {
				t.Errorf("%d dead letters, %v", len(entries), err)
			}
			return time.Minute
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				store := state.NewMemory()
				s := trimmedShard(t, store)
				found := time.Now()
				var got sink
				o := withBox(store, "orders")
				r := start(t, s, got.handle, o)
				pass(time.Second)
				want(t, "handled", got.all(), "a/5 a/6 a/7")
				want(t, "dead letters", parked(t, store), "a/2-5")
				g := r.p.Gaps()
				if len(g) != 1 || g[0].Table != "orders" || g[0].StreamARN != stubARN("orders") || g[0].Found.Sub(found) > time.Second {
					t.Errorf("gaps: %+v", g)
				}
				r.unready("records after 100000000000000000002 and before 100000000000000000005")
				r.mustEnd()

				r = start(t, s, got.handle, o)
				pass(time.Second)
				r.unready("table orders shard a: records after 100000000000000000002 and before 100000000000000000005 were trimmed")
				if r.openGaps != 1 {
					t.Errorf("the hook was told of %d open gaps", r.openGaps)
				}
				pass(acknowledge(t, r.p, o.Flow.DeadLetter.(*deadletter.Box)))
				r.unready("")
				if r.openGaps != 0 {
					t.Errorf("the hook was told of %d open gaps", r.openGaps)
				}
				r.mustEnd()
				want(t, "dead letters", parked(t, store), "")
				want(t, "events", r.log(), "started a, stopped a")

				r = start(t, s, got.handle, o)
				pass(time.Second)
				r.unready("")
				r.mustEnd()
			})
		})
	}
}

// keeper is a GapKeeper that fails when it is told to.
type keeper struct {
	*deadletter.Box
	mu                      sync.Mutex
	park, list, acknowledge error
	parks, good             int // of parks, so many before park counts
}

func (k *keeper) set(park, list, acknowledge error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.park, k.list, k.acknowledge = park, list, acknowledge
}

func (k *keeper) ParkGap(ctx context.Context, g *sluice.Gap) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.parks++
	if k.park != nil && k.parks > k.good {
		return k.park
	}
	return k.Box.ParkGap(ctx, g)
}

func (k *keeper) Gaps(ctx context.Context) ([]sluice.Gap, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.list != nil {
		return nil, k.list
	}
	return k.Box.Gaps(ctx)
}

func (k *keeper) AcknowledgeGap(ctx context.Context, g *sluice.Gap) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.acknowledge != nil {
		return k.acknowledge
	}
	return k.Box.AcknowledgeGap(ctx, g)
}

// Nothing behind a gap is read before the gap is durable, and nothing handled
// before its end is.
func TestGapCannotBeParked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := state.NewMemory()
		s := trimmedShard(t, store)
		k := &keeper{Box: deadletter.NewBox(store, "sluice")}
		full := errors.New("disk full")
		k.set(full, nil, nil)
		var got sink
		o := testOptions(store, "orders")
		o.Flow.DeadLetter = k
		before := s.count("GetRecords", "a")
		r := start(t, s, got.handle, o)
		pass(time.Minute)
		r.unready("state store: park gap fails since")
		r.unready("shard a: records after 100000000000000000002 were trimmed before they were read: disk full")
		if n := s.count("GetRecords", "a") - before; n > 1 { // that of the start
			t.Errorf("%d reads behind a gap that is not durable", n)
		}
		if k.parks < 5 || k.parks > 20 {
			t.Errorf("%d tries in a minute", k.parks)
		}
		want(t, "events", r.log(), "started a")
		k.set(nil, nil, nil)
		s.with(func() {
			s.fail = func(op, _ string) string {
				if op == "GetRecords" { // the end of the gap is to be stored next
					k.set(full, nil, nil)
				}
				return ""
			}
		})
		pass(time.Minute)
		want(t, "handled", got.all(), "")
		want(t, "dead letters", parked(t, store), "a/2-")
		s.with(func() { s.fail = nil })
		k.set(nil, nil, nil)
		pass(time.Minute)
		want(t, "handled", got.all(), "a/5 a/6 a/7")
		want(t, "dead letters", parked(t, store), "a/2-5")
		want(t, "events", r.log(), "started a, gap a 2")

		k.set(nil, nil, full)
		if err := r.p.AcknowledgeGaps(t.Context(), r.p.Gaps()...); !errors.Is(err, full) {
			t.Errorf("AcknowledgeGaps: %v", err)
		}
		r.unready("acknowledge the gap")
		k.set(nil, full, nil)
		pass(time.Minute)
		r.unready("list gaps fails")
		r.unready("acknowledge the gap") // what is known stays
		k.set(nil, nil, nil)
		pass(time.Minute)
		r.mustEnd()
	})
}

// Reading that ends while a gap, or its end, cannot be parked ends in order.
func TestStopWhileAGapCannotBeParked(t *testing.T) {
	for part, parks := range map[string]int{"gap": 0, "end": 1} {
		for _, how := range []string{"stopped", "lease lost"} {
			t.Run(part+" "+how, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					store := state.NewMemory()
					s := trimmedShard(t, store)
					k := &keeper{Box: deadletter.NewBox(store, "sluice"), good: parks, park: errors.New("disk full")}
					o := testOptions(store, "orders")
					o.Flow.DeadLetter = k
					o.DiscoverEvery = 5 * time.Second
					var got sink
					r := start(t, s, got.handle, o)
					pass(10 * time.Second)
					r.unready("park gap fails")
					if how == "lease lost" {
						store.Close()
						if _, err := store.Claim(t.Context(), state.Stream{Application: "sluice", ARN: stubARN("orders")}, "a", "", "other"); err != nil {
							t.Error(err)
						}
						pass(6 * time.Second)
						if h := r.p.NotReady(); strings.Contains(strings.Join(h, " "), "park gap fails") {
							t.Errorf("what another has to do makes this poller unready: %v", h)
						}
					}
					r.mustEnd()
					want(t, "handled", got.all(), "")
					want(t, "position", stored(t, store, "orders"), "a@2")
					if !strings.Contains(r.log(), how+" a") {
						t.Errorf("events: %s", r.log())
					}
				})
			})
		}
	}
}

// A gap that is found again, because nothing behind it was settled, is the
// same one; it ends where the stream now begins.
func TestGapIsFoundAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := state.NewMemory()
		s := trimmedShard(t, store)
		found := time.Now()
		failing := func(context.Context, *sluice.Record) error { return errors.New("not now") }
		o := withBox(store, "orders")
		r := start(t, s, failing, o)
		pass(time.Minute)
		want(t, "dead letters", parked(t, store), "a/2-5")
		r.mustEnd()
		o.Gaps = Halt
		r = start(t, s, failing, o)
		pass(time.Minute)
		r.mustEnd()
		want(t, "dead letters", parked(t, store), "a/2-5")
		s.with(func() { s.streams[stubARN("orders")].shards[0].trimmed = 5 })
		o.Gaps = GoOn
		r = start(t, s, failing, o)
		pass(time.Minute)
		want(t, "dead letters", parked(t, store), "a/2-6")
		want(t, "events", r.log(), "started a")
		if g := r.p.Gaps(); len(g) != 1 || g[0].Found.Sub(found) > time.Second {
			t.Errorf("gaps: %+v", g)
		}
		r.mustEnd()
	})
}

// An end that is found after the gap was acknowledged does not bring it back.
func TestAcknowledgedBeforeItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := state.NewMemory()
		s := trimmedShard(t, store)
		down := true
		s.fail = func(op, _ string) string {
			if down && op == "GetRecords" {
				return "InternalServerError:500"
			}
			return ""
		}
		var got sink
		r := start(t, s, got.handle, withBox(store, "orders"))
		pass(time.Second)
		want(t, "dead letters", parked(t, store), "a/2-")
		if err := r.p.AcknowledgeGaps(t.Context(), r.p.Gaps()...); err != nil {
			t.Error(err)
		}
		s.with(func() { down = false })
		pass(time.Minute)
		want(t, "handled", got.all(), "a/5 a/6 a/7")
		want(t, "dead letters", parked(t, store), "")
		r.unready("")
		r.mustEnd()
	})
}

// What is trimmed while the horizon is looked for belongs to the same gap; a
// record that has no position does not end it, and one that was read before
// is not behind it.
func TestEndOfAGap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := state.NewMemory()
		s := trimmedShard(t, store)
		a := s.streams[stubARN("orders")].shards[0]
		a.records[5].seq = strings.Repeat("x", 60)
		again := 3
		s.fail = func(op, _ string) string {
			if op == "GetRecords" && len(s.calls) > 10 && again > 0 {
				again--
				a.trimmed = 5
				return "TrimmedDataAccessException"
			}
			return ""
		}
		var got sink
		r := start(t, s, got.handle, withBox(store, "orders"))
		pass(time.Minute)
		want(t, "handled", got.all(), "a/7")
		want(t, "dead letters", parked(t, store), "a/2-7")
		if strings.Count(r.log(), "gap") != 1 || again != 0 {
			t.Errorf("events: %s; %d trims are left", r.log(), again)
		}
		r.mustEnd()
	})
	bubble(t, func(t *testing.T) { // TRIM_HORIZON leads before the position
		store := state.NewMemory()
		s := trimmedShard(t, store)
		s.streams[stubARN("orders")].shards[0].trimmed = 0
		s.fail = func(string, string) string {
			if s.last().kind == "AFTER_SEQUENCE_NUMBER" {
				return "TrimmedDataAccessException"
			}
			return ""
		}
		var got sink
		o := withBox(store, "orders")
		o.Limit = 1
		r := start(t, s, got.handle, o)
		pass(time.Minute)
		want(t, "dead letters", parked(t, store), "a/2-3")
		r.mustEnd()
	})
}

// The policy Halt keeps the position until somebody has decided to go on.
func TestHaltAndGoOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := state.NewMemory()
		s := trimmedShard(t, store)
		var got sink
		o := withBox(store, "orders")
		for range 2 { // a restart changes nothing
			o.Gaps = Halt
			r := start(t, s, got.handle, o)
			pass(time.Minute)
			r.unready("table orders shard a: halted at a gap")
			r.unready("acknowledge the gap")
			r.mustEnd()
			want(t, "handled", got.all(), "")
			want(t, "dead letters", parked(t, store), "a/2-")
			want(t, "position", stored(t, store, "orders"), "a@2")
		}
		o.Gaps = GoOn
		r := start(t, s, got.handle, o)
		pass(time.Minute)
		want(t, "handled", got.all(), "a/5 a/6 a/7")
		want(t, "dead letters", parked(t, store), "a/2-5")
		r.mustEnd()
		want(t, "position", stored(t, store, "orders"), "a@7")
	})
	bubble(t, func(t *testing.T) { // a shard that is no more
		store := state.NewMemory()
		s := trimmedShard(t, store)
		c := &stubShard{id: "c", parent: "a"}
		s.streams[stubARN("orders")].shards = []*stubShard{c}
		s.put(c, "k")
		var got sink
		o := withBox(store, "orders")
		o.Gaps = Halt
		r := start(t, s, got.handle, o)
		pass(time.Minute)
		r.unready("halted at a gap")
		r.mustEnd()
		want(t, "handled", got.all(), "")
		want(t, "dead letters", parked(t, store), "a/2-!")
		o.Gaps = GoOn
		r = start(t, s, got.handle, o)
		pass(time.Minute)
		r.mustEnd()
		want(t, "handled", got.all(), "c/1")
		want(t, "dead letters", parked(t, store), "a/2-!")
		want(t, "positions", stored(t, store, "orders"), "a@2! c@1")
	})
}

// Dead letters that only take are given the gap; what is open they do not
// know.
func TestGapGoesToAQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := state.NewMemory()
		s := trimmedShard(t, store)
		var sent []string
		o := testOptions(store, "orders")
		o.Flow.DeadLetter = deadletter.Sender(func(_ context.Context, e deadletter.Entry, _ []byte) error {
			sent = append(sent, fmt.Sprintf("%s-%s", e.Gap.After, e.Gap.Before))
			return nil
		})
		var got sink
		r := start(t, s, got.handle, o)
		pass(3 * time.Minute)
		want(t, "sent", strings.ReplaceAll(strings.Join(sent, " "), stubBase, ""), "2- 2-5")
		r.unready("acknowledge the gap")
		if err := r.p.AcknowledgeGaps(t.Context(), r.p.Gaps()...); err != nil {
			t.Error(err)
		}
		r.unready("")
		r.mustEnd()
	})
}
