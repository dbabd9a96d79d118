package reindex

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/localtest"
)

// A reindex that another process abandons ends before its index is deleted. A later
// write would make an index of that name, or leave a ghost in the next one.
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

// Abandoned indices go, and their names are not used again while they are there.
func TestAbandon(t *testing.T) {
	if localtest.Elsewhere(t) { // TestBothWaits has the race detector
		return
	}
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
		if err := r.Finish(t.Context(), true); err == nil || !strings.Contains(err.Error(), "products-000001 is not deleted: the alias products leads to it again") {
			t.Error(err)
		}
		if _, ok := w.meta["products-000001"]; !ok {
			t.Error("the index behind the alias was deleted")
		}
	})
}

// With an item that cannot be projected or written, the index does not count as filled.
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
		{"a wrong time", func(w *world, r *Reindex) { r.TTL = -1 }, "TTL is -1ns and"},
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
