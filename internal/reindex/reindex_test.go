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
	"github.com/sluicehq/sluice/effect/document"
)

// Both waits are needed. Without the first, one writer writes an item to both indices,
// and another, which does not know the second index yet, deletes it in one: the item
// stays in the other. Without the second, a write of such a writer after the scan is
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

// Two processes that start one reindex at once make one index.
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

// Temporary failures are retried.
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
