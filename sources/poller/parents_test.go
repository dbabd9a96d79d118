package poller

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// family puts a parent a with two children into the world, and hides the
// parent from the next n listings.
func (w *ordersStream) family(n int) {
	w.put(2)
	a := w.open()
	w.meet(w.table.Roll(a))
	w.put(2)
	w.table.Hide(a, n)
}

// A parent that is listed long after its child is still read before it.
func TestParentIsListedLate(t *testing.T) {
	for _, hidden := range []int{1, 2, 3, 6, 9, 100} {
		bubble(t, func(t *testing.T) {
			w := newOrdersStream(t)
			w.family(hidden)
			r := w.run(t, w.options(), 2*time.Minute)
			want(t, "handled", w.handled(), "a1 a2 b3 b4")
			want(t, "gaps", w.gaps(t), "")
			if strings.Contains(r.log(), "gap") {
				t.Errorf("events: %s", r.log())
			}
		})
	}
}

// A refusal that passes does not make an end of the parent.
func TestParentIsRefusedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newOrdersStream(t)
		a := w.open()
		w.family(20)
		w.Fail(streamtest.Fault{Op: "GetShardIterator", Shard: a, Error: "ValidationException", Times: 2})
		w.run(t, w.options(), 2*time.Minute)
		want(t, "handled", w.handled(), "a1 a2 b3 b4")
	})
}

// A parent that is listed need not be asked for any more.
func TestParentIsListedAndNotAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newOrdersStream(t)
		a := w.open()
		w.family(7)
		w.Fail(streamtest.Fault{Op: "GetShardIterator", Shard: a, Error: "AccessDeniedException"})
		r := start(t, w, w.handle, w.options())
		pass(8 * time.Second)
		r.unready("which other shards wait for")
		pass(time.Minute)
		r.unready("AccessDeniedException")
		if reasons := strings.Join(r.p.NotReady(), " "); strings.Contains(reasons, "which other shards wait for") {
			t.Errorf("reasons: %s", reasons)
		}
		r.mustEnd()
	})
}

// Ancestors that come to light one by one are read from the oldest on.
func TestAncestorsAreListedLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newOrdersStream(t)
		for range 4 {
			w.put(1)
			w.roll()
		}
		w.put(1)
		for _, sh := range w.table.Shards() {
			if !sh.Open {
				w.table.Hide(sh.ID, map[string]int{"a": 10, "b": 8, "c": 5, "d": 3}[w.names[sh.ID]])
			}
		}
		w.run(t, w.options(), 5*time.Minute)
		want(t, "handled", w.handled(), "a1 b2 c3 d4 e5")
		want(t, "gaps", w.gaps(t), "")
	})
}

// A parent that was trimmed does not block, and is asked for once.
func TestTrimmedParentDoesNotBlock(t *testing.T) {
	for _, answer := range []string{"", "TrimmedDataAccessException", "ValidationException"} {
		t.Run(answer, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newOrdersStream(t)
				w.put(1)
				a := w.open()
				w.roll()
				pass(25 * time.Hour)
				w.put(1)
				if answer != "" {
					w.Fail(streamtest.Fault{Op: "GetShardIterator", Shard: a, Error: answer})
				}
				w.run(t, w.options(), time.Second)
				want(t, "handled", w.handled(), "b2")
				want(t, "gaps", w.gaps(t), "")
				asked := 0
				for _, c := range w.Calls() {
					if c.Op == "GetShardIterator" && c.Shard == a {
						asked++
					}
				}
				if asked != 1 && answer != "ValidationException" || asked > 3 {
					t.Errorf("the parent was asked for %d times", asked)
				}
			})
		})
	}
}

// While the service does not answer, the child waits, and that is told.
func TestParentCannotBeAskedFor(t *testing.T) {
	for _, f := range []streamtest.Fault{{Error: "InternalServerError"}, {Error: "ThrottlingException"}, {Error: "AccessDeniedException"}, {Hang: true}} {
		t.Run(f.Error, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newOrdersStream(t)
				f.Shard = w.open()
				w.family(100)
				f.Op = "GetShardIterator"
				mended := w.Fail(f)
				r := start(t, w, w.handle, w.options())
				pass(2 * time.Second)
				if f.Error != "AccessDeniedException" {
					r.unready("")
				}
				pass(5 * time.Minute)
				r.unready("shard " + f.Shard + ", which other shards wait for, is in no listing, and asking for it fails: ")
				r.unready(cmp.Or(f.Error, "deadline exceeded"))
				want(t, "handled", w.handled(), "")
				asked := 0
				for _, c := range w.Calls() {
					if c.Op == "GetShardIterator" && c.Shard == f.Shard {
						asked++
					}
				}
				if asked < 5 || asked > 20 {
					t.Errorf("asked %d times in five minutes", asked)
				}
				mended()
				pass(2 * time.Minute)
				r.unready("")
				r.mustEnd()
				want(t, "handled", w.handled(), "a1 a2 b3 b4")
			})
		})
	}
}

// Run ends at once while the service is being asked.
func TestStopWhileAsking(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newOrdersStream(t)
		a := w.open()
		w.family(100)
		w.Fail(streamtest.Fault{Op: "GetShardIterator", Shard: a, Hang: true})
		o := w.options()
		o.CallTimeout = time.Hour
		r := start(t, w, w.handle, o)
		pass(5 * time.Second)
		began := time.Now()
		r.mustEnd()
		if d := time.Since(began); d > 0 {
			t.Errorf("it took %v", d)
		}
	})
}

// A shard that came and went while nobody read is a gap, though only its child
// can be seen.
func TestParentWasLostUnread(t *testing.T) {
	for _, policy := range []GapPolicy{GoOn, Halt} {
		bubble(t, func(t *testing.T) {
			w := newOrdersStream(t)
			w.put(1)
			w.roll() // to b, of which nobody hears
			w.table.Hide(w.open(), 10)
			w.run(t, w.options(), time.Second)
			want(t, "handled at first", w.handled(), "a1")
			w.put(1)
			w.roll()
			pass(23*time.Hour + 59*time.Minute)
			w.put(1) // in c, whose beginning is there
			pass(5 * time.Minute)
			o := w.options()
			o.Gaps = policy
			r := start(t, w, w.handle, o)
			pass(time.Minute)
			want(t, "gaps", w.gaps(t), "b gone")
			if policy == Halt {
				r.unready("shard " + w.open() + ": halted at a gap")
				want(t, "handled", w.handled(), "a1")
			} else {
				r.acknowledge()
				pass(2 * time.Minute)
				r.unready("")
			}
			r.mustEnd()
			w.got = nil
			w.put(1)
			w.run(t, w.options(), time.Minute)
			if policy == Halt {
				want(t, "handled by one that goes on", w.handled(), "c3 c4")
				want(t, "gaps", w.gaps(t), "b gone")
			} else {
				want(t, "handled later", w.handled(), "c4")
				want(t, "gaps", w.gaps(t), "") // it is not asked for again
			}
		})
	}
}

// A parent that is listed after its child was begun is never read twice. If it
// was never read, it is read late, out of order. The child goes on meanwhile,
// and is not begun anew.
func TestParentIsShownAfterItsChildWasBegun(t *testing.T) {
	for _, read := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			s, store := newStub(), state.NewMemory()
			a, b := &stubShard{id: "a", closed: true}, &stubShard{id: "b", parent: "a"}
			st := s.table("orders", a, b)
			s.put(a, "k", "k")
			s.put(b, "k")
			if !read { // nothing knows the parent
				s.with(func() {
					st.hidden["a"] = true
					s.fail = func(op, shard string) string {
						if shard == "a" {
							return "ResourceNotFoundException"
						}
						return ""
					}
				})
			}
			var got sink
			r := start(t, s, got.handle, withBox(store, "orders"))
			pass(time.Minute)
			if read {
				want(t, "handled", got.all(), "a/1 a/2 b/1")
				s.with(func() { st.hidden["a"] = true })
				pass(5 * time.Minute) // it is forgotten
			} else {
				want(t, "handled", got.all(), "b/1")
			}
			s.with(func() { st.hidden["a"], s.fail = false, nil })
			s.put(b, "k")
			pass(2 * time.Minute)
			all := "b/1 b/2 a/1 a/2"
			if read {
				all = "a/1 a/2 b/1 b/2"
			}
			want(t, "handled", got.all(), all)
			r.unready("")
			r.mustEnd()
			want(t, "positions", stored(t, store, "orders"), "a@2! b@2")
			want(t, "gaps", parked(t, store), "")

			got.got = nil
			s.put(b, "k")
			r = start(t, s, got.handle, withBox(store, "orders"))
			pass(2 * time.Minute)
			r.mustEnd()
			want(t, "handled after a restart", got.all(), "b/3")
		})
	}
}
