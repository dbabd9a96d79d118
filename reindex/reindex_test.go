package reindex

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/document"
)

func started(t *testing.T, seed uint64) *world {
	w := newWorld(t, seed, 4)
	for i := range 30 {
		w.change(fmt.Sprint("p", i), false)
	}
	w.pending.Wait()
	return w
}

// A process that dies between any two steps, or right after one of which it did
// not hear, is followed by another; whatever is written meanwhile is in both
// indices, and nothing else is.
func TestKilledAnywhere(t *testing.T) {
	steps := map[string]func(Reindex) error{
		"start":    func(r Reindex) error { _, err := r.Start(context.Background()); return err },
		"swap":     func(r Reindex) error { return r.Swap(context.Background(), false) },
		"rollback": func(r Reindex) error { return r.Rollback(context.Background()) },
		"finish":   func(r Reindex) error { return r.Finish(context.Background(), true) },
	}
	order := []string{"start", "swap", "rollback", "swap", "finish"}
	kills := 0
	for step := range order {
		if step == 3 {
			continue // swap has had its turn
		}
		for call := 1; ; call++ {
			killed := false
			for _, late := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					w := started(t, uint64(100*step+call))
					stop := w.live(60)
					for i, name := range order {
						r := w.reindex()
						if i == step {
							w.calls, w.killAt, w.late = 0, call, late
							if err := steps[name](r); errors.Is(err, errKilled) {
								killed = true
								kills++
							} else if err != nil {
								t.Fatalf("%s, killed at call %d: %v", name, call, err)
							}
							w.killAt = 0
							time.Sleep(3 * time.Second)
						}
						if err := steps[name](r); err != nil {
							t.Fatalf("%s again, after a kill at call %d: %v", name, call, err)
						}
						if i != step || name == "finish" {
							continue
						}
						if err := steps[name](r); err != nil && name != "start" {
							t.Fatalf("%s for the third time: %v", name, err)
						}
						stop()
						w.check("products-000001")
						w.check("products-000002")
						stop = w.live(60)
					}
					time.Sleep(15 * time.Second)
					stop()
					w.check("products-000002")
					if len(w.meta) != 1 || len(w.aliases) != 1 || w.aliases["products"] != "products-000002" {
						t.Errorf("left: indices %v, aliases %v", w.meta, w.aliases)
					}
					if string(w.meta["products-000002"]["owner"]) != `"us"` {
						t.Errorf("_meta is %s", w.meta["products-000002"])
					}
				})
				if t.Failed() {
					t.Fatalf("step %s, call %d, late %v", order[step], call, late)
				}
			}
			if !killed {
				break
			}
		}
	}
	if kills < 50 {
		t.Errorf("only %d kills", kills)
	}
}

// A kill within the backfill is one more place.
func TestKilledInBackfill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := started(t, 1)
		stop := w.live(60)
		r := w.reindex()
		r.Attempts = 1
		n := 0
		r.Write = func(ctx context.Context, op document.Op) error {
			if n++; n > 10 {
				return errKilled
			}
			return w.write(ctx, op)
		}
		if _, err := r.Start(t.Context()); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		st, err := r.Status(t.Context())
		if err != nil || st.Stage != Filling {
			t.Fatalf("%+v, %v", st, err)
		}
		if err := r.Swap(t.Context(), true); err == nil || !strings.Contains(err.Error(), "is filling, want filled") {
			t.Fatal(err)
		}
		r.Write = w.write
		c, err := r.Start(t.Context())
		if err != nil || !c.Equal() || c.Sampled == 0 {
			t.Fatalf("%v, %v", c, err)
		}
		stop()
		w.check("products-000002")
	})
}

// Both waits are needed. Without the first, an item that one writer wrote to both
// indices, and another deleted in one because it did not know yet, stays in the
// other. Without the second, what such a writer writes after the table was read is
// missing.
func TestBothWaits(t *testing.T) {
	for _, tt := range []struct{ first, second bool }{{false, true}, {true, false}, {true, true}} {
		wrong := 0
		for seed := range uint64(12) {
			synctest.Test(t, func(t *testing.T) {
				w := started(t, seed)
				for i, write := range w.writers { // they look up at different times
					time.Sleep(2500 * time.Millisecond)
					op := document.Op{Action: document.Delete, Index: "products", ID: fmt.Sprint("none", i), Fence: document.Newer, Version: 1}
					if err := write(t.Context(), op); err != nil {
						t.Fatal(err)
					}
				}
				stop := w.live(60)
				r := w.reindex().withDefaults()
				st, err := r.Status(t.Context())
				if err == nil {
					err = r.create(t.Context(), st)
				}
				if err == nil && tt.first {
					err = r.wait(t.Context(), "")
				}
				if err == nil {
					err = r.Cluster.Point(t.Context(), map[string]string{"products.deletes": "products-000002"}, map[string]string{"products.also": "products-000002"})
				}
				if err == nil && tt.second {
					err = r.wait(t.Context(), "")
				}
				var done sync.WaitGroup
				done.Go(func() { _, err = r.backfill(t.Context(), "products-000002") })
				time.Sleep(5 * time.Second) // while some writers know, and others may not
				stop()
				done.Wait()
				if err != nil {
					t.Fatal(err)
				}
				there := map[string]int64{}
				for _, d := range w.docs.Docs("products-000002") {
					there[d.ID] = d.Version
				}
				if !maps.Equal(there, w.items) {
					wrong++
				}
			})
		}
		if (wrong == 0) != (tt.first && tt.second) {
			t.Errorf("waits %+v: %d of 12 indices were wrong", tt, wrong)
		}
	}
}

// Changes that leave a document as it was are not written: the current index
// then has it in a lower version than the table, and than the new index.
func TestChangesThatAreNotWritten(t *testing.T) {
	for _, tt := range []struct{ newBodies, live bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 12, 4)
			w.quiet = true
			for range 4 {
				for i := range 30 {
					w.change(fmt.Sprint("p", i), false)
				}
			}
			for i := range 15 {
				w.change(fmt.Sprint("p", i), false) // 5: and 4 was written
			}
			w.pending.Wait()
			stop := func() {}
			if tt.live {
				stop = w.live(60)
			}
			r := w.reindex()
			r.NewBodies = tt.newBodies
			c, err := r.Start(t.Context())
			if err != nil || !c.Equal() {
				t.Fatalf("%v, %v", c, err)
			}
			for _, step := range []func(context.Context) error{
				func(ctx context.Context) error { return r.Swap(ctx, false) },
				r.Rollback,
				func(ctx context.Context) error { return r.Swap(ctx, false) },
			} {
				if err := step(t.Context()); err != nil {
					t.Fatal(err)
				}
				if c, err := r.Compare(t.Context()); err != nil || !c.Equal() {
					t.Fatalf("%v, %v", c, err)
				}
			}
			stop()
			w.check("products-000001")
			w.check("products-000002")
		})
	}
}

// That versions tell nothing is remembered from the start on.
func TestVersionsThatTellNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := started(t, 13)
		for i := range 30 {
			w.change(fmt.Sprint("p", i), false)
		}
		w.pending.Wait()
		r := w.reindex()
		r.NewBodies, r.NoVersions = true, true
		r.Project = func(rec *sluice.Record) ([]document.Op, error) {
			ops, err := w.project(rec)
			for i := range ops {
				ops[i].Version = 1
			}
			return ops, err
		}
		if c, err := r.Start(t.Context()); err != nil || !c.Equal() {
			t.Fatalf("%v, %v", c, err)
		}
		if err := (Reindex{Alias: r.Alias, Cluster: r.Cluster, Get: r.Get, NewBodies: true}).Swap(t.Context(), false); err != nil {
			t.Error(err)
		}
	})
}

// Of two processes that start one reindex at once, neither makes an index of its
// own beside the other's.
func TestTwoAtOnce(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w := started(t, seed)
			w.meta["products-000002"] = nil // an old one
			stop := w.live(60)
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					if _, err := w.reindex().Start(t.Context()); err != nil && !strings.Contains(err.Error(), "leads to") {
						t.Error(err)
					}
				})
			}
			all.Wait()
			r := w.reindex()
			if c, err := r.Start(t.Context()); err != nil || !c.Equal() {
				t.Errorf("%v, %v", c, err)
			}
			if _, ok := w.meta["products-000004"]; ok || w.aliases["products.also"] != "products-000003" {
				t.Errorf("seed %d: indices %v, aliases %v", seed, w.meta, w.aliases)
			}
			stop()
			w.check("products-000003")
		})
	}
}

// One that is abandoned by another process ends before its index is deleted: a
// write would make an index of that name, or leave a ghost in its successor's.
func TestAbandonedWhileItFills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := started(t, 14)
		var all sync.WaitGroup
		all.Go(func() {
			r := w.reindex()
			r.Scan = func(ctx context.Context) iter.Seq2[*sluice.Record, error] {
				return func(yield func(*sluice.Record, error) bool) {
					for rec, err := range w.scan(ctx) {
						time.Sleep(4 * time.Second)
						if !yield(rec, err) {
							return
						}
					}
				}
			}
			if _, err := r.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "products-000002 is no longer to be filled") {
				t.Errorf("the abandoned process: %v", err)
			}
		})
		time.Sleep(time.Minute)
		if err := w.reindex().Abandon(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if c, err := w.reindex().Start(t.Context()); err != nil || !c.Equal() {
			t.Errorf("%v, %v", c, err)
		}
		all.Wait()
		w.check("products-000002")
	})
}

// A look-up that fails now and then ends no backfill.
func TestFillsWhileTheClusterIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := started(t, 15)
		r := w.reindex()
		busy := &busyCluster{Cluster: r.Cluster}
		r.Cluster = busy
		r.Scan = func(ctx context.Context) iter.Seq2[*sluice.Record, error] {
			return func(yield func(*sluice.Record, error) bool) {
				for rec, err := range w.scan(ctx) {
					time.Sleep(4 * time.Second)
					busy.fail = 3
					if !yield(rec, err) {
						return
					}
				}
				busy.fail = 0
			}
		}
		if c, err := r.Start(t.Context()); err != nil || !c.Equal() {
			t.Errorf("%v, %v", c, err)
		}
	})
}

type busyCluster struct {
	Cluster
	fail int // calls
}

func (c *busyCluster) Behind(ctx context.Context, aliases ...string) (map[string][]string, error) {
	if c.fail > 0 {
		c.fail--
		return nil, errors.New("busy")
	}
	return c.Cluster.Behind(ctx, aliases...)
}

func TestSame(t *testing.T) {
	doc := func(version int64, body string) document.Doc {
		return document.Doc{Found: version > 0, Version: version, Source: []byte(body)}
	}
	seen := func(current, other int64) pending { return pending{current: current, other: other, looked: true} }
	for _, tt := range []struct {
		name           string
		before         pending
		current, other document.Doc
		r              Reindex
		same           bool
	}{
		{"equal", pending{}, doc(1, "a"), doc(1, "a"), Reindex{}, true},
		{"equal in another order", pending{}, doc(1, `{"a":1,"b":2}`), doc(1, `{"b":2.0,"a":1}`), Reindex{}, true},
		{"both gone", pending{}, doc(0, ""), doc(0, ""), Reindex{}, true},
		{"one gone", seen(1, 0), doc(1, "a"), doc(0, ""), Reindex{}, false},
		{"another version of one body", pending{}, doc(2, "1"), doc(1, "1"), Reindex{}, true},
		{"another version", pending{}, doc(2, "2"), doc(1, "1"), Reindex{}, false},
		{"which stands still", seen(2, 1), doc(2, "2"), doc(1, "1"), Reindex{}, false},
		{"which moves on", seen(2, 1), doc(4, "4"), doc(3, "3"), Reindex{}, true},
		{"while it was away", seen(0, 1), doc(4, "4"), doc(3, "3"), Reindex{}, false},
		{"another body", pending{}, doc(1, "1"), doc(1, "2"), Reindex{}, false},
		{"which moves on in equal versions", seen(1, 1), doc(2, "1"), doc(2, "2"), Reindex{}, false},
		{"which is meant", pending{}, doc(1, "1"), doc(1, "2"), Reindex{NewBodies: true}, true},
		{"of which the new one is newer", pending{}, doc(1, "1"), doc(2, "2"), Reindex{NewBodies: true}, true},
		{"of which the old one is newer", pending{}, doc(2, "1"), doc(1, "2"), Reindex{NewBodies: true}, false},
		{"and moves on", seen(2, 1), doc(4, "1"), doc(3, "2"), Reindex{NewBodies: true}, true},
		{"which tells nothing", pending{}, doc(2, "1"), doc(1, "2"), Reindex{NewBodies: true, NoVersions: true}, true},
		{"versions that say nothing", pending{}, doc(2, "1"), doc(1, "1"), Reindex{NoVersions: true}, true},
		{"and another body", pending{}, doc(2, "1"), doc(1, "2"), Reindex{NoVersions: true}, false},
		{"which stands still, too", seen(2, 1), doc(2, "1"), doc(1, "2"), Reindex{NoVersions: true}, false},
	} {
		if _, same := tt.r.same(tt.before, tt.current, tt.other, false); same != tt.same {
			t.Errorf("%s: %v", tt.name, same)
		}
		before := pending{current: tt.before.other, other: tt.before.current, looked: tt.before.looked}
		if _, same := tt.r.same(before, tt.other, tt.current, true); same != tt.same {
			t.Errorf("%s, swapped: %v", tt.name, same)
		}
	}
}

// A writer that knows nothing of a second index is found by the comparison, and
// keeps the alias from being swapped.
func TestForeignWriter(t *testing.T) {
	for _, deletes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := started(t, 5)
			r := w.reindex()
			c, err := r.Start(t.Context())
			if err != nil || !c.Equal() || c.Sampled != 30 || c.Counts != [2]int64{30, 30} {
				t.Fatalf("%v, %v", c, err)
			}
			op := document.Op{Action: document.Put, Index: "products-000001", ID: "p3", Fence: document.Newer, Version: 50, Body: []byte(`{}`)}
			want := "p3: version 50 in products-000001, 1 in products-000002"
			if deletes {
				op.Action, op.Body = document.Delete, nil
				want = "products-000001 has 29 documents, products-000002 30"
			}
			if err := w.write(t.Context(), op); err != nil {
				t.Fatal(err)
			}
			var differ *NotEqualError
			if err := r.Swap(t.Context(), false); !errors.As(err, &differ) || !strings.Contains(err.Error(), want) {
				t.Fatalf("%v, want %q", err, want)
			}
			if w.aliases["products"] != "products-000001" {
				t.Error("swapped all the same")
			}
			if err := r.Swap(t.Context(), true); err != nil || w.aliases["products"] != "products-000002" {
				t.Errorf("by force: %v", err)
			}
		})
	}
}

// Abandoned indices go, and their names are not used again while they are there.
func TestAbandon(t *testing.T) {
	for _, call := range []int{0, 1, 2, 3, 4, 5, 6} {
		for _, late := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := started(t, 6)
				stop := w.live(60)
				r := w.reindex()
				if _, err := r.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.calls, w.killAt, w.late = 0, call, late
				if err := r.Abandon(t.Context(), true); call > 0 && !errors.Is(err, errKilled) || call == 0 && err != nil {
					t.Fatal(err)
				}
				w.killAt = 0
				if err := r.Abandon(t.Context(), true); err != nil {
					t.Fatal(err)
				}
				stop()
				if len(w.meta) != 1 || len(w.aliases) != 1 || w.aliases["products"] != "products-000001" {
					t.Errorf("left: %v, %v", w.meta, w.aliases)
				}
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		w := started(t, 7)
		r := w.reindex()
		for range 2 {
			if _, err := r.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := r.Abandon(t.Context(), false); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st, err := r.Status(t.Context()); err != nil || st.Other != "products-000004" || st.Stage != Filled {
			t.Errorf("%+v, %v", st, err)
		}
	})
}

// An index that the alias was led back to by hand, while the writers were waited
// for, is not deleted.
func TestDeletesNoIndexInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := started(t, 16)
		r := w.reindex()
		if _, err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Swap(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		r.Step = func(what string) {
			if strings.HasPrefix(what, "wait") {
				w.aliases["products"] = "products-000001"
			}
		}
		if err := r.Finish(t.Context(), true); err == nil || !strings.Contains(err.Error(), "leads to products-000001 again") {
			t.Error(err)
		}
		if _, ok := w.meta["products-000001"]; !ok {
			t.Error("the index behind the alias was deleted")
		}
	})
}

// What cannot be projected or written keeps the index from counting as filled.
func TestIncomplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := started(t, 8)
		r := w.reindex()
		r.Project = func(rec *sluice.Record) ([]document.Op, error) {
			if id, _ := rec.New.Lookup("id"); id.Str() == "p1" {
				return nil, sluice.Permanent(errors.New("no name"))
			}
			return w.project(rec)
		}
		r.Write = func(ctx context.Context, op document.Op) error {
			if op.ID == "p2" {
				return sluice.Permanent(errors.New("mapping"))
			}
			return w.write(ctx, op)
		}
		told := map[string]string{}
		r.Failed = func(key sluice.Item, err error) { told[string(key.Raw())] = err.Error() }
		var incomplete *IncompleteError
		if _, err := r.Start(t.Context()); !errors.As(err, &incomplete) || incomplete.Failed != 2 {
			t.Fatal(err)
		}
		if told[`{"id":{"S":"p1"}}`] != "no name" || told[`{"id":{"S":"p2"}}`] != "mapping" {
			t.Errorf("told %v", told)
		}
		r.SkipFailed = true
		c, err := r.Start(t.Context())
		if err != nil || c.Equal() || c.Counts != [2]int64{30, 28} {
			t.Errorf("%v, %v", c, err)
		}
	})
}

// What passes is tried again.
func TestWritesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := started(t, 9)
		r := w.reindex()
		tries := map[string]int{}
		r.Write = func(ctx context.Context, op document.Op) error {
			w.mu.Lock()
			tries[op.ID]++
			n := tries[op.ID]
			w.mu.Unlock()
			if n < 8 {
				return errors.New("busy")
			}
			return w.write(ctx, op)
		}
		if c, err := r.Start(t.Context()); err != nil || !c.Equal() {
			t.Errorf("%v, %v", c, err)
		}
	})
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name string
		with func(*world, *Reindex)
		want string
	}{
		{"no alias", func(w *world, _ *Reindex) { clear(w.aliases) }, "products is no alias: want one that leads to an index such as products-000001"},
		{"another body", func(w *world, r *Reindex) {
			r.Start(context.Background())
			r.Body = []byte(`{}`)
		}, "products is filled, with an index that was made of another body"},
		{"somebody's alias", func(w *world, r *Reindex) {
			w.meta["theirs"] = nil
			w.aliases["products.also"] = "theirs"
		}, "neither it nor products-000001 says"},
		{"both aliases", func(w *world, r *Reindex) {
			w.aliases["products.also"], w.aliases["products.deletes"] = "a", "b"
		}, `lead to ["a" "b"]`},
		{"itself", func(w *world, r *Reindex) { w.aliases["products.also"] = "products-000001" }, "which no reindex does"},
		{"swapped", func(w *world, r *Reindex) {
			r.Start(context.Background())
			r.Swap(context.Background(), true)
		}, "swapped already, to products-000002"},
		{"aliases in the body", func(w *world, r *Reindex) { r.Body = []byte(`{"aliases":{"products":{}}}`) }, "Body has aliases"},
		{"no object", func(w *world, r *Reindex) { r.Body = []byte(`[]`) }, "Body is no JSON object"},
		{"nothing given", func(w *world, r *Reindex) { *r = Reindex{TTL: -1, Looks: -1} }, "reindex: Alias is missing"},
		{"a wrong number", func(w *world, r *Reindex) { r.Looks = -1 }, "Looks is -1, want"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := started(t, 10)
			r := w.reindex()
			tt.with(w, &r)
			if _, err := r.Start(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w := started(t, 11)
		r := w.reindex()
		for name, f := range map[string]func() error{
			"swap":     func() error { return r.Swap(t.Context(), true) },
			"rollback": func() error { return r.Rollback(t.Context()) },
			"compare":  func() error { _, err := r.Compare(t.Context()); return err },
		} {
			if err := f(); err == nil || !strings.Contains(err.Error(), "products is idle") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := r.Finish(t.Context(), true); err != nil || len(w.meta) != 1 {
			t.Errorf("finish of nothing: %v, %v", err, w.meta)
		}
	})
}
