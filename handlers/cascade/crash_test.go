//go:build integration || long

package cascade

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
)

// restart delivers the record until it is settled, then the messages, and
// brings the process back whenever it has died; each process lives for calls as
// alive says, 0 for ever.
func (w *world) restart(t *testing.T, x *Cascade, rec *sluice.Record, alive func() (calls int, before bool)) (deaths int) {
	t.Helper()
	live := func() {
		n, before := alive()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.dead, w.calls, w.killAt, w.before = false, 0, n, before
	}
	live()
	for !settled(x.Remove(t.Context(), rec)) {
		if !w.dead {
			t.Fatal("the record failed although its process lived")
		}
		deaths++
		live()
	}
	for n := 0; ; n++ {
		if n > 10_000 {
			t.Fatal("the queue does not become empty")
		}
		some, err := w.deliver(t.Context(), x.Work)
		if !some {
			return deaths
		}
		if w.dead { // also one that said nothing of it to its handler any more
			deaths++
			live()
		} else if !settled(err) {
			t.Fatal("a message failed although its process lived: ", err)
		}
	}
}

func settled(err error) bool { return err == nil || sluice.IsSkip(err) }

// Whichever call the process dies at, before or after its effect: in the end
// no child is left, and no other row is gone.
func TestEachCrashPoint(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, tt := range []struct {
		name            string
		rows, threshold int
		index           bool // each row is a request
	}{{"inline", 70, 500, false}, {"handed over", 70, 30, false}, {"by message", 70, 0, false}, {"by index", 20, 8, true}} {
		calls := 1
		for n := 1; n <= calls; n++ {
			for _, before := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					w := points(tt.rows)
					w.took = 10 * time.Millisecond
					c := w.config()
					c.Threshold, c.PageSize, w.inFlight = tt.threshold, 40*tt.rows/70, 2
					c.Budget = 100 * time.Millisecond // so that messages go on in others
					if tt.index {
						p := w.tables["points"]
						p.index("byMap", time.Second, "map_id")
						for key, it := range p.rows {
							p.set(key, it)
						}
						c.Children[0].Index = "byMap"
					}
					first := true
					deaths := w.restart(t, must(t, c), mapRemoved(), func() (int, bool) {
						if !first {
							return 0, false
						}
						first = false
						return n, before
					})
					if left := w.left(t); left != 0 {
						t.Errorf("%s: died at call %d, before %v: %d children are left", tt.name, n, before, left)
					}
					if deaths == 0 {
						calls = 0 // it was over before
						return
					}
					calls = max(calls, n+1)
				})
			}
		}
	}
}

// Two processes that have the same message at once.
func TestDoubleDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := points(1000)
		w.took = 10 * time.Millisecond
		c := w.config()
		c.PageSize = 100
		x := must(t, c)
		errs := make(chan error)
		for range 2 {
			go func() { errs <- x.Work(t.Context(), record(sluice.Message{Body: body})) }()
		}
		for range 2 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if got := bodies(w); w.left(t) != 0 || len(got) != 2 || got[0] != got[1] {
			t.Errorf("%d left, sent %q", w.left(t), got)
		}
		w.drain(t, x.Work)
	})
}

// With random tables, kinds, limits and crashes, a cascade deletes exactly the oracle's
// children.
func TestOnlyChildrenGo(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	onlyChildrenGo(t, 150)
}

func onlyChildrenGo(t *testing.T, seeds uint64) {
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			pick := func(s ...string) string { return s[r.IntN(len(s))] }
			w := newWorld()
			w.took = time.Duration(r.IntN(20)) * time.Millisecond
			tab := w.table("one", "PK", "SK")
			tab.index("byOwner", time.Duration(r.IntN(3000))*time.Millisecond, "owner", "rank")
			id := pick(`{"S":"1"}`, `{"N":"1"}`, `{"B":"MQ=="}`)
			text := "1"
			for i := range r.IntN(300) {
				pk := pick(id, `{"S":"1"}`, `{"S":"12"}`, `{"S":"2"}`, `{"S":"P#1"}`)
				sk := fmt.Sprintf("%s%d", pick("a#", "a#1#", "a#12#", "b#", "a"), i)
				owner := ""
				if r.IntN(2) > 0 {
					owner = fmt.Sprintf(`,"owner":%s,"rank":{"S":%q}`, pick(id, `{"S":"2"}`), pick("a#", "b#")+fmt.Sprint(i))
				}
				tab.put(fmt.Sprintf(`{"PK":%s,"SK":{"S":%q},"keep":{"BOOL":%v}%s}`, pk, sk, r.IntN(5) == 0, owner))
			}
			parent := fmt.Sprintf(`{"id":%s}`, id)
			w.table("parents", "id")
			time.Sleep(time.Duration(r.IntN(5)) * time.Second)

			kept := func(it sluice.Item) bool { v, _ := it.Lookup("keep"); return v.Bool() }
			str := func(it sluice.Item, name string) string { v, _ := it.Lookup(name); return v.Str() }
			same := func(it sluice.Item, name string) bool {
				v, ok := it.Lookup(name)
				u, _ := parse(parent).Lookup("id")
				return ok && v.Equal(u)
			}
			isText := !strings.Contains(id, "B")
			kinds := []struct {
				child Child
				is    func(it sluice.Item) bool
			}{
				{Child{Partition: Attr{Name: "PK", From: "id"}}, func(it sluice.Item) bool { return same(it, "PK") }},
				{Child{Partition: Attr{Name: "PK", From: "id"}, Sort: Attr{Name: "SK", Before: "a#"}},
					func(it sluice.Item) bool { return same(it, "PK") && strings.HasPrefix(str(it, "SK"), "a#") }},
				{Child{Partition: Attr{Name: "PK", Before: "2"}, Sort: Attr{Name: "SK", Before: "a#", From: "id", After: "#"}},
					func(it sluice.Item) bool {
						return isText && str(it, "PK") == "2" && strings.HasPrefix(str(it, "SK"), "a#"+text+"#")
					}},
				{Child{Index: "byOwner", Partition: Attr{Name: "owner", From: "id"}}, func(it sluice.Item) bool { return same(it, "owner") }},
				{Child{Index: "byOwner", Partition: Attr{Name: "owner", From: "id"}, Sort: Attr{Name: "rank", Before: "b#"}},
					func(it sluice.Item) bool { return same(it, "owner") && strings.HasPrefix(str(it, "rank"), "b#") }},
			}
			c := w.config()
			c.Table, c.Key, c.Children = "parents", []string{"id"}, nil
			want := make(map[string]bool)
			for i, n := range r.Perm(len(kinds))[:1+r.IntN(2)] {
				kind := kinds[n]
				if n == 2 && !isText {
					continue // there is no text to make the prefix of
				}
				child := kind.child
				child.Table, child.Key = "one", []string{"PK", "SK"}
				if i > 0 {
					child.Name = "more"
				}
				spare := r.IntN(2) > 0
				if spare {
					child.Exclude, child.Attributes = kept, []string{"keep"}
				}
				for key, it := range tab.rows {
					if kind.is(it) && (!spare || !kept(it)) {
						want[key] = true
					}
				}
				c.Children = append(c.Children, child)
			}
			if len(c.Children) == 0 {
				return
			}
			c.Threshold, c.PageSize, w.inFlight = r.IntN(60), 1+r.IntN(40), 1+r.IntN(4)
			c.Budget = time.Duration(1+r.IntN(400)) * time.Millisecond
			before, lives := tab.keys(), 0
			w.restart(t, must(t, c), removed("parents", parent, parent), func() (int, bool) {
				// A cascade over many rows that stay needs a process that lives long
				// enough to read them all.
				if lives++; lives > 50 {
					return 0, false
				}
				return 1 + r.IntN(60), r.IntN(2) == 0
			})
			var expect []string
			for _, key := range before {
				if !want[key] {
					expect = append(expect, key)
				}
			}
			if got := tab.keys(); !slices.Equal(got, expect) {
				t.Errorf("seed %d: %d rows are left, want %d: %+v", seed, len(got), len(expect), c.Children)
			}
		})
	}
}
