//go:build integration || long

package reindex

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/localtest"
)

// A process dies between any two steps, or after a step whose answer it did not get.
// Another process continues. In the end both indices have exactly the writes of the
// time between.
func TestKilledAnywhere(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	steps := map[string]func(Reindex) error{
		"start":    func(r Reindex) error { _, err := r.Start(context.Background()); return err },
		"swap":     swapped,
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
