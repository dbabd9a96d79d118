package lineage

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicehq/sluice/state"
)

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// whole is when a listing of all shards began: long after they were made.
var whole = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

func TestForest(t *testing.T) {
	now := time.Now()
	family := []Listed{{ID: "a", Closed: true}, {ID: "b", Parent: "a"}, {ID: "c", Parent: "a"}, {ID: "d"}}
	for _, c := range []struct {
		name  string
		build func(f *Forest)
		ready string
	}{
		{"children wait for their parent", func(f *Forest) { f.Merge(family, whole) }, "[a d]"},
		{"children start when their parent is settled", func(f *Forest) {
			f.Merge(family, whole)
			f.Ended("a", Finished, time.Time{})
		}, "[b c d]"},
		{"a parent listed after its child blocks it all the same", func(f *Forest) {
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Merge(family, whole)
		}, "[a d]"},
		{"a missing parent is looked for once more", func(f *Forest) { f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole) }, "[]"},
		{"it is asked for then", func(f *Forest) {
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
		}, "[]"},
		{"a trimmed parent does not block", func(f *Forest) {
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Answered("a", Over)
		}, "[b]"},
		{"a parent of a denied stream does not block", func(f *Forest) {
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.StreamDenied()
		}, "[b]"},
		{"a parent that was settled and trimmed does not block", func(f *Forest) {
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Remember([]state.Shard{{ID: "a", Epoch: 1, Position: state.Position{Finished: true}}})
		}, "[b]"},
		{"a parent whose other child was begun does not block", func(f *Forest) {
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Remember([]state.Shard{{ID: "c", Epoch: 1, Parent: "a", Position: state.Position{Finished: true}}})
		}, "[b]"},
		{"a parent that the service knows waits for a listing", func(f *Forest) {
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Answered("a", Exists)
			for range lateListings - 1 {
				f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			}
		}, "[]"},
		{"but not for ever", func(f *Forest) {
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Answered("a", Exists)
			for range lateListings {
				f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			}
		}, "[a]"},
		{"a parent that the service knows is listed with its own", func(f *Forest) {
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Answered("a", Exists)
			f.Merge([]Listed{{ID: "a", Parent: "z"}, {ID: "b", Parent: "a"}, {ID: "z"}}, whole)
		}, "[z]"},
		{"a shard begun before does not wait for a trimmed parent", func(f *Forest) {
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Remember([]state.Shard{{ID: "b", Parent: "a"}})
		}, "[b]"},
		{"a stored parent that is not listed is read before its child", func(f *Forest) {
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Remember([]state.Shard{{ID: "a"}})
		}, "[a]"},
		{"a finished parent shown late is not begun again", func(f *Forest) {
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Remember([]state.Shard{{ID: "a", Epoch: 1, Position: state.Position{Finished: true}}, {ID: "b"}})
			f.Merge(family, whole)
			f.Remember([]state.Shard{{ID: "a", Epoch: 1, Position: state.Position{Finished: true}}, {ID: "b"}})
		}, "[b c d]"},
		{"an ancestor of a shard from before the start waits until that is shown", func(f *Forest) {
			rows := []state.Shard{{ID: "b", Position: state.Position{Finished: true}}}
			f.Merge([]Listed{{ID: "a", Closed: true}, {ID: "c", Parent: "b"}}, whole)
			f.Remember(rows)
		}, "[]"},
		{"but not for ever", func(f *Forest) {
			rows := []state.Shard{{ID: "b", Position: state.Position{Finished: true}}}
			for range lateListings {
				f.Merge([]Listed{{ID: "a", Closed: true}, {ID: "c", Parent: "b"}}, whole)
				f.Remember(rows)
			}
		}, "[a c]"},
		{"an unlisted shard does not wait for ever", func(f *Forest) {
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Remember([]state.Shard{{ID: "z", Position: state.Position{Finished: true}}})
			f.Answered("a", Exists)
			for range lateListings {
				f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			}
		}, "[a]"},
		{"a shard that was created after the start does not", func(f *Forest) {
			f.past.before = time.UnixMilli(1700000000000)
			f.Merge([]Listed{{ID: "shardId-00000001700000000001-a"}}, whole)
			f.Remember([]state.Shard{{ID: "b", Position: state.Position{Finished: true}}})
		}, "[shardId-00000001700000000001-a]"},
		{"a denied shard waits for two listings", func(f *Forest) {
			f.Merge(family, whole)
			f.Ended("a", Denied, time.Time{})
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
		}, "[d]"},
		{"a denied shard that two listings miss is retired", func(f *Forest) {
			f.Merge(family, whole)
			f.Ended("a", Denied, time.Time{})
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
			f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
		}, "[a d]"},
		{"a denied shard that is listed is tried again", func(f *Forest) {
			f.Merge(family, whole)
			f.Ended("a", Denied, time.Time{})
			f.Merge(family, whole)
		}, "[a d]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := New()
			c.build(f)
			got, _ := f.Ready(now)
			want(t, "ready", fmt.Sprint(got), c.ready)
		})
	}
}

// Only a parent is asked for that two listings missed after the first with its child, and not that of a shard
// that was begun.
func TestForestDoubts(t *testing.T) {
	f := New()
	children := []Listed{{ID: "b", Parent: "a"}, {ID: "c", Parent: "a"}, {ID: "e", Parent: "d"}, {ID: "f", Parent: "e"}}
	for _, doubts := range []string{"[]", "[]", "[a]"} {
		f.Merge(children, whole)
		f.Remember([]state.Shard{{ID: "e"}})
		want(t, "doubts", fmt.Sprint(f.UnlistedParents()), doubts)
	}
	f.Answered("a", Over)
	want(t, "doubts", fmt.Sprint(f.UnlistedParents()), "[]")
}

// Whatever the listings leave out and in whatever order they come, a shard
// never runs before one of its ancestors that the service still has is settled,
// and all are read in the end.
func TestForestNeverRunsParentAndChild(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var all []Listed
		parents := map[string]string{}
		for i := range 1 + rnd.IntN(20) {
			l := Listed{ID: fmt.Sprintf("s%02d", i)}
			if i > 0 && rnd.IntN(4) > 0 {
				l.Parent = fmt.Sprintf("s%02d", rnd.IntN(i))
			}
			all = append(all, l)
			parents[l.ID] = l.Parent
		}
		f, active, finished := New(), map[string]bool{}, map[string]bool{}
		hidden := map[string]int{} // listings in a row
		for range 1000 {
			rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			var seen []Listed
			for _, l := range all {
				if hidden[l.ID] < lateListings-1 && rnd.IntN(3) > 0 {
					hidden[l.ID]++
					continue
				}
				hidden[l.ID] = 0
				seen = append(seen, l)
			}
			f.Merge(seen, whole)
			var rows []state.Shard
			for id := range finished {
				rows = append(rows, state.Shard{ID: id, Parent: parents[id], Position: state.Position{Finished: true}})
			}
			f.Remember(rows)
			if rnd.IntN(2) == 0 {
				f.Merge(all[:rnd.IntN(len(all)+1)], time.Time{})
			}
			for _, id := range f.UnlistedParents() {
				if rnd.IntN(3) > 0 {
					f.Answered(id, Exists)
				}
			}
			start, _ := f.Ready(time.Now())
			for _, id := range start {
				f.Begin(id)
				if finished[id] { // forgotten, and shown again: the claim says so
					f.Ended(id, Finished, time.Time{})
					continue
				}
				for p := parents[id]; p != ""; p = parents[p] {
					if !finished[p] {
						t.Fatalf("seed %d: %s started before its ancestor %s was settled", seed, id, p)
					}
				}
				if active[id] {
					t.Fatalf("seed %d: %s started twice", seed, id)
				}
				active[id] = true
			}
			for id := range active {
				if rnd.IntN(2) == 0 {
					f.Ended(id, Finished, time.Time{})
					finished[id] = true
					delete(active, id)
				}
			}
			if len(finished) == len(all) {
				break
			}
		}
		if len(finished) != len(all) {
			t.Fatalf("seed %d: %d of %d shards were read", seed, len(finished), len(all))
		}
	}
}

func TestForestForgetsWhatIsTrimmed(t *testing.T) {
	f := New()
	f.Merge([]Listed{{ID: "a", Closed: true}, {ID: "b", Parent: "a"}}, whole)
	f.Ended("a", Finished, time.Time{})
	for range Confirmations {
		f.Merge([]Listed{{ID: "b", Parent: "a"}}, whole)
	}
	if f.nodes["a"] != nil {
		t.Errorf("a trimmed, finished shard is still kept: %v", f.nodes)
	}
}

// Of a stream that the service knows no more, nothing waits for a listing.
func TestDeniedStreamWaitsForNoListing(t *testing.T) {
	f := New()
	f.Merge([]Listed{{ID: "gone"}, {ID: "child", Parent: "nobody"}}, whole)
	f.Remember([]state.Shard{{ID: "halfway"}})
	f.Remember([]state.Shard{{ID: "unread", Position: state.Position{Finished: true}}})
	f.Ended("gone", Denied, time.Time{})
	f.node("unlisted").unlisted = true
	f.StreamDenied()
	ready, _ := f.Ready(time.Now())
	want(t, "ready", fmt.Sprint(ready), "[child gone halfway unlisted]")
	if f.Settled() || f.Unsure() {
		t.Errorf("settled %v, unsure %v", f.Settled(), f.Unsure())
	}
}

// A shard that another finished is done when our own worker has come back: its
// handlers may still be at it.
func TestForestWaitsForItsOwnWorker(t *testing.T) {
	f := New()
	f.Merge([]Listed{{ID: "a", Closed: true}, {ID: "b", Parent: "a"}}, whole)
	f.Begin("a")
	f.Remember([]state.Shard{{ID: "a", Epoch: 1, Position: state.Position{Finished: true}}})
	got, _ := f.Ready(time.Now())
	want(t, "ready", fmt.Sprint(got), "[]")
	f.Ended("a", Stopped, time.Time{})
	got, _ = f.Ready(time.Now())
	want(t, "ready", fmt.Sprint(got), "[a]")
}

// A listing of many pages can show the child of a shard that was made, and closed,
// while it ran. That it does not show the shard itself says nothing.
func TestAListingMissesNothingYounger(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	id := func(at time.Time) string { return fmt.Sprintf("shardId-%020d-a", at.UnixMilli()) }
	parent, child := id(began.Add(time.Second)), id(began.Add(2*time.Second))
	f := New()
	f.Merge([]Listed{{ID: parent, Closed: true}}, time.Time{})
	for range Confirmations {
		f.Merge([]Listed{{ID: child, Parent: "unknown"}}, began)
	}
	if n := f.nodes[parent]; n.missing > 0 || len(f.UnlistedParents()) > 0 {
		t.Errorf("missing %d times, and the service is asked for %v", n.missing, f.UnlistedParents())
	}
	for range Confirmations {
		f.Merge([]Listed{{ID: child, Parent: "unknown"}}, began.Add(time.Minute))
	}
	if n := f.nodes[parent]; n.missing != Confirmations || len(f.UnlistedParents()) != 1 {
		t.Errorf("missing %d times, and the service is asked for %v", n.missing, f.UnlistedParents())
	}
}

// An id may not tell when its shard was made. The first listing that shows such a
// shard without its parent may have begun before both were made.
func TestAListingMissesNothingThatMayBeYounger(t *testing.T) {
	f := New()
	for seen := 1; seen <= 1+Confirmations; seen++ {
		f.Merge([]Listed{{ID: "child", Parent: "unknown"}}, whole)
		if asked := len(f.UnlistedParents()) > 0; asked != (seen > Confirmations) {
			t.Errorf("after %d listings with the child alone the service is asked for its parent: %v", seen, asked)
		}
	}
	f = New()
	f.Merge([]Listed{{ID: "child", Parent: "unknown"}}, time.Time{}) // so it was made before the next begins
	for range Confirmations {
		f.Merge([]Listed{{ID: "child", Parent: "unknown"}}, whole)
	}
	if len(f.UnlistedParents()) == 0 {
		t.Error("after two listings that began after the child was made, the service is not asked for its parent")
	}
}

// After a shard ended, another listing should come soon until one shows a child
// of it. What the store says of it meanwhile does not change that.
func TestForestIsUnsureUntilAChildIsShown(t *testing.T) {
	f := New()
	f.Merge([]Listed{{ID: "a"}}, whole)
	f.Begin("a")
	unsure := func(when string, want bool) {
		t.Helper()
		if got := f.Unsure(); got != want {
			t.Errorf("%s: unsure %v", when, got)
		}
		if c := f.Count(); want && c != (Counts{Finished: 1}) {
			t.Errorf("%s: %+v", when, c)
		}
	}
	unsure("while it is read", false)
	f.Ended("a", Finished, time.Time{})
	unsure("when it ended", true)
	f.Merge([]Listed{{ID: "a", Closed: true}}, whole)
	f.Remember([]state.Shard{{ID: "a", Epoch: 1, Position: state.Position{Finished: true}}})
	unsure("when a listing shows no child", true)
	f.Merge([]Listed{{ID: "b", Parent: "a"}}, time.Time{})
	unsure("when one does", false)
	if !f.IsDue("b") || f.IsDue("a") || f.Settled() {
		t.Errorf("due: b %v, a %v; settled %v", f.IsDue("b"), f.IsDue("a"), f.Settled())
	}
}

// How a worker came back decides whether, and when, its shard is begun again.
func TestForestBeginsAgain(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		how    End
		at     time.Time
		ready  string
		next   time.Time
		counts Counts
	}{
		{NotBegun, now.Add(time.Second), "[]", now.Add(time.Second), Counts{Waiting: 1}},
		{Stopped, now, "[a]", time.Time{}, Counts{Waiting: 1}},
		{Stopped, now.Add(time.Second), "[]", now.Add(time.Second), Counts{Waiting: 1}},
		{Denied, now, "[]", time.Time{}, Counts{Waiting: 1}},
		{Finished, now, "[]", time.Time{}, Counts{Finished: 1}},
		{Halted, now, "[]", time.Time{}, Counts{Halted: 1}},
	} {
		f := New()
		f.Merge([]Listed{{ID: "a"}}, whole)
		f.StartLatest("a", "iterator")
		if s := f.Begin("a"); s.ID != "a" || s.Latest != "iterator" || s.Gone {
			t.Errorf("%+v", s)
		}
		f.Ended("a", c.how, c.at)
		ready, next := f.Ready(now)
		if fmt.Sprint(ready) != c.ready || !next.Equal(c.next) || f.Count() != c.counts {
			t.Errorf("%+v: ready %v, next %v, %+v", c, ready, next, f.Count())
		}
		if s := f.Begin("a"); s.Latest != "" || s.Gone != (c.how == Denied) {
			t.Errorf("%+v: begun again with %+v", c, s)
		}
	}
}
