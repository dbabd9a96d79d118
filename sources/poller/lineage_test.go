package poller

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicehq/sluice/state"
)

func ids(nodes []*node) string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.id)
	}
	return fmt.Sprint(out)
}

// whole is when a listing of all shards began: long after they were made.
var whole = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

func TestForest(t *testing.T) {
	now := time.Now()
	family := []listed{{id: "a", closed: true}, {id: "b", parent: "a"}, {id: "c", parent: "a"}, {id: "d"}}
	for _, c := range []struct {
		name  string
		build func(f *forest)
		ready string
	}{
		{"children wait for their parent", func(f *forest) { f.merge(family, whole) }, "[a d]"},
		{"children start when their parent is settled", func(f *forest) {
			f.merge(family, whole)
			f.node("a").phase = done
		}, "[b c d]"},
		{"a parent listed after its child blocks it all the same", func(f *forest) {
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.merge(family, whole)
		}, "[a d]"},
		{"a missing parent is looked for once more", func(f *forest) { f.merge([]listed{{id: "b", parent: "a"}}, whole) }, "[]"},
		{"it is asked for then", func(f *forest) {
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
		}, "[]"},
		{"a trimmed parent does not block", func(f *forest) {
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.answered("a", over)
		}, "[b]"},
		{"nor does one of a stream that is no more", func(f *forest) {
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.denied()
		}, "[b]"},
		{"a parent that was settled and trimmed does not block", func(f *forest) {
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.remember([]state.Shard{{ID: "a", Epoch: 1, Position: state.Position{Finished: true}}})
		}, "[b]"},
		{"nor does one of which another child was begun", func(f *forest) {
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.remember([]state.Shard{{ID: "c", Epoch: 1, Parent: "a", Position: state.Position{Finished: true}}})
		}, "[b]"},
		{"a parent that the service knows waits for a listing", func(f *forest) {
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.answered("a", there)
			for range lateListings - 1 {
				f.merge([]listed{{id: "b", parent: "a"}}, whole)
			}
		}, "[]"},
		{"but not for ever", func(f *forest) {
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.answered("a", there)
			for range lateListings {
				f.merge([]listed{{id: "b", parent: "a"}}, whole)
			}
		}, "[a]"},
		{"a parent that the service knows is listed with its own", func(f *forest) {
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.answered("a", there)
			f.merge([]listed{{id: "a", parent: "z"}, {id: "b", parent: "a"}, {id: "z"}}, whole)
		}, "[z]"},
		{"a shard begun before does not wait for a trimmed parent", func(f *forest) {
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.remember([]state.Shard{{ID: "b", Parent: "a"}})
		}, "[b]"},
		{"a stored parent that is not listed is read before its child", func(f *forest) {
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.remember([]state.Shard{{ID: "a"}})
		}, "[a]"},
		{"a finished parent shown late is not begun again", func(f *forest) {
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.remember([]state.Shard{{ID: "a", Epoch: 1, Position: state.Position{Finished: true}}, {ID: "b"}})
			f.merge(family, whole)
			f.remember([]state.Shard{{ID: "a", Epoch: 1, Position: state.Position{Finished: true}}, {ID: "b"}})
		}, "[b c d]"},
		{"an ancestor of a shard from before the start waits until that is shown", func(f *forest) {
			rows := []state.Shard{{ID: "b", Position: state.Position{Finished: true}}}
			f.merge([]listed{{id: "a", closed: true}, {id: "c", parent: "b"}}, whole)
			f.remember(rows)
		}, "[]"},
		{"but not for ever", func(f *forest) {
			rows := []state.Shard{{ID: "b", Position: state.Position{Finished: true}}}
			for range lateListings {
				f.merge([]listed{{id: "a", closed: true}, {id: "c", parent: "b"}}, whole)
				f.remember(rows)
			}
		}, "[a c]"},
		{"nor does a shard that no listing shows", func(f *forest) {
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.remember([]state.Shard{{ID: "z", Position: state.Position{Finished: true}}})
			f.answered("a", there)
			for range lateListings {
				f.merge([]listed{{id: "b", parent: "a"}}, whole)
			}
		}, "[a]"},
		{"a shard that was created after the start does not", func(f *forest) {
			f.past.before = time.UnixMilli(1700000000000)
			f.merge([]listed{{id: "shardId-00000001700000000001-a"}}, whole)
			f.remember([]state.Shard{{ID: "b", Position: state.Position{Finished: true}}})
		}, "[shardId-00000001700000000001-a]"},
		{"a denied shard waits for two listings", func(f *forest) {
			f.merge(family, whole)
			f.node("a").gone, f.node("a").missing = true, 0
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
		}, "[d]"},
		{"a denied shard that two listings miss is retired", func(f *forest) {
			f.merge(family, whole)
			f.node("a").gone, f.node("a").missing = true, 0
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
			f.merge([]listed{{id: "b", parent: "a"}}, whole)
		}, "[a d]"},
		{"a denied shard that is listed is tried again", func(f *forest) {
			f.merge(family, whole)
			f.node("a").gone = true
			f.merge(family, whole)
		}, "[a d]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newForest()
			c.build(f)
			got, _ := f.ready(now)
			want(t, "ready", ids(got), c.ready)
		})
	}
}

// Only a parent that two listings missed is asked for, and not that of a shard
// that was begun.
func TestForestDoubts(t *testing.T) {
	f := newForest()
	children := []listed{{id: "b", parent: "a"}, {id: "c", parent: "a"}, {id: "e", parent: "d"}, {id: "f", parent: "e"}}
	for _, doubts := range []string{"[]", "[a]", "[a]"} {
		f.merge(children, whole)
		f.remember([]state.Shard{{ID: "e"}})
		want(t, "doubts", fmt.Sprint(f.doubted()), doubts)
	}
	f.answered("a", over)
	want(t, "doubts", fmt.Sprint(f.doubted()), "[]")
}

// Whatever the listings leave out and in whatever order they come, a shard
// never runs before one of its ancestors that the service still has is settled,
// and all are read in the end.
func TestForestNeverRunsParentAndChild(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var all []listed
		parents := map[string]string{}
		for i := range 1 + rnd.IntN(20) {
			l := listed{id: fmt.Sprintf("s%02d", i)}
			if i > 0 && rnd.IntN(4) > 0 {
				l.parent = fmt.Sprintf("s%02d", rnd.IntN(i))
			}
			all = append(all, l)
			parents[l.id] = l.parent
		}
		f, active, finished := newForest(), map[string]bool{}, map[string]bool{}
		hidden := map[string]int{} // listings in a row
		for range 1000 {
			rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			var seen []listed
			for _, l := range all {
				if hidden[l.id] < lateListings-1 && rnd.IntN(3) > 0 {
					hidden[l.id]++
					continue
				}
				hidden[l.id] = 0
				seen = append(seen, l)
			}
			f.merge(seen, whole)
			var rows []state.Shard
			for id := range finished {
				rows = append(rows, state.Shard{ID: id, Parent: parents[id], Position: state.Position{Finished: true}})
			}
			f.remember(rows)
			if rnd.IntN(2) == 0 {
				f.merge(all[:rnd.IntN(len(all)+1)], time.Time{})
			}
			for _, id := range f.doubted() {
				if rnd.IntN(3) > 0 {
					f.answered(id, there)
				}
			}
			start, _ := f.ready(time.Now())
			for _, n := range start {
				if finished[n.id] { // forgotten, and shown again: the claim says so
					n.phase = done
					continue
				}
				for p := parents[n.id]; p != ""; p = parents[p] {
					if !finished[p] {
						t.Fatalf("seed %d: %s started before its ancestor %s was settled", seed, n.id, p)
					}
				}
				if active[n.id] {
					t.Fatalf("seed %d: %s started twice", seed, n.id)
				}
				n.phase, active[n.id] = running, true
			}
			for id := range active {
				if rnd.IntN(2) == 0 {
					f.node(id).phase, finished[id] = done, true
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
	f := newForest()
	f.merge([]listed{{id: "a", closed: true}, {id: "b", parent: "a"}}, whole)
	f.node("a").phase = done
	for range confirmations {
		f.merge([]listed{{id: "b", parent: "a"}}, whole)
	}
	if f.nodes["a"] != nil {
		t.Errorf("a trimmed, finished shard is still kept: %v", f.nodes)
	}
}

// Of a stream that the service knows no more, nothing waits for a listing.
func TestDeniedStreamWaitsForNoListing(t *testing.T) {
	f := newForest()
	f.merge([]listed{{id: "gone"}, {id: "child", parent: "nobody"}}, whole)
	f.remember([]state.Shard{{ID: "halfway"}})
	f.remember([]state.Shard{{ID: "unread", Position: state.Position{Finished: true}}})
	f.nodes["gone"].gone = true
	f.node("unlisted").unlisted = true
	f.denied()
	ready, _ := f.ready(time.Now())
	want(t, "ready", ids(ready), "[child gone halfway unlisted]")
	if f.settled() || f.unsure() {
		t.Errorf("settled %v, unsure %v", f.settled(), f.unsure())
	}
}

// A shard that another finished is done when our own worker has come back: its
// handlers may still be at it.
func TestForestWaitsForItsOwnWorker(t *testing.T) {
	f := newForest()
	f.merge([]listed{{id: "a", closed: true}, {id: "b", parent: "a"}}, whole)
	f.node("a").phase = running
	f.remember([]state.Shard{{ID: "a", Epoch: 1, Position: state.Position{Finished: true}}})
	got, _ := f.ready(time.Now())
	want(t, "ready", ids(got), "[]")
	f.node("a").phase = waiting // it came back
	got, _ = f.ready(time.Now())
	want(t, "ready", ids(got), "[a]")
}

// A listing of many pages can show the child of a shard that was made, and closed,
// while it ran. That it does not show the shard itself says nothing.
func TestAListingMissesNothingYounger(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	id := func(at time.Time) string { return fmt.Sprintf("shardId-%020d-a", at.UnixMilli()) }
	parent, child := id(began.Add(time.Second)), id(began.Add(2*time.Second))
	f := newForest()
	f.merge([]listed{{id: parent, closed: true}}, time.Time{})
	for range confirmations {
		f.merge([]listed{{id: child, parent: "unknown"}}, began)
	}
	if n := f.nodes[parent]; n.missing > 0 || len(f.doubted()) > 0 {
		t.Errorf("missing %d times, and the service is asked for %v", n.missing, f.doubted())
	}
	for range confirmations {
		f.merge([]listed{{id: child, parent: "unknown"}}, began.Add(time.Minute))
	}
	if n := f.nodes[parent]; n.missing != confirmations || len(f.doubted()) != 1 {
		t.Errorf("missing %d times, and the service is asked for %v", n.missing, f.doubted())
	}
}
