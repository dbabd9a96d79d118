//go:build integration || long

package poller_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/streamtest"
)

// An item fails while others succeed behind it. After a stop only its changes come
// again, also when the poller is stopped before it has read all of them.
func TestAStopKeepsWhatIsSettledAhead(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.o.Limit = 10
		var healed atomic.Bool
		w.handle = func(_ context.Context, name string) error {
			if strings.HasPrefix(name, "bad") && !healed.Load() {
				return errors.New("not yet")
			}
			return nil
		}
		d := w.start()
		w.put("a", "b")
		w.pass(2 * time.Second)
		w.put("bad", "a", "bad", "b")
		w.put(keys(100)...)
		w.pass(10 * time.Second)
		d.end()
		first := w.stored(w.shard(0)).Position
		if n := len(strings.Fields(first.Ahead)); n != 3 {
			w.Fatalf("stored: %+v, want the last record and 2 that are not settled", first)
		}

		d = w.start() // and nothing happens
		w.pass(10 * time.Second)
		if p := w.stored(w.shard(0)).Position; p != first {
			w.Errorf("while nothing is settled the position became %+v, and was %+v", p, first)
		}
		w.put("bad", "c")
		w.pass(10 * time.Second)
		d.end()
		if n := len(strings.Fields(w.stored(w.shard(0)).Position.Ahead)); n != 4 {
			w.Errorf("stored: %+v, want the last record and 3 that are not settled", w.stored(w.shard(0)).Position)
		}

		healed.Store(true)
		d = w.start()
		w.pass(10 * time.Second)
		d.end()
		if p := w.stored(w.shard(0)).Position; p.Ahead != "" {
			w.Errorf("all is settled, and the position is %+v", p)
		}
		w.once(0)
	})
}

// Whatever fails for a while, and whenever the poller stops: nothing is lost or out of
// order, and nothing comes again after a stop in order. After a crash it may.
func TestStopsRepeatNothing(t *testing.T) {
	if localtest.Elsewhere(t) { // 12 seeds
		return
	}
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 4))
			crashes := seed%4 == 3
			inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
				w.o.Limit = int32(1 + rnd.IntN(30))
				if rnd.IntN(2) == 0 { // a stop comes between the records of a page
					w.o.Flow.Window = 1 + rnd.IntN(20)
				}
				var failing atomic.Pointer[[]string] // items
				w.handle = func(ctx context.Context, name string) error {
					if w.o.Flow.Window > 0 {
						select {
						case <-ctx.Done():
							return ctx.Err()
						case <-time.After(100 * time.Millisecond):
						}
					}
					if all := failing.Load(); all != nil && slices.ContainsFunc(*all, func(k string) bool { return strings.HasPrefix(name, k) }) {
						return errors.New("not yet")
					}
					return nil
				}
				w.put(keys(60)...) // each shard has a position
				crash := w.crashing()
				d := w.start()
				w.pass(5 * time.Second)
				for range 5 {
					some := keys(60)
					rnd.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
					if crashes {
						some = some[:rnd.IntN(60)] // more than can be named
					} else {
						some = some[:rnd.IntN(3)]
					}
					failing.Store(&some)
					for range rnd.IntN(20) {
						w.put(keys(60)[rnd.IntN(20):]...)
						w.pass(time.Duration(rnd.IntN(2000)) * time.Millisecond)
					}
					if crashes && rnd.IntN(2) == 0 {
						crash(d)
					} else {
						d.end()
					}
					crash = w.crashing()
					d = w.start()
					w.pass(time.Duration(rnd.IntN(1500)) * time.Millisecond)
				}
				d.end()
				failing.Store(nil)
				w.o.IdleInterval = 10 * time.Second
				d = w.start()
				w.pass(20 * time.Minute)
				d.end()
				w.complete(0)
				if !crashes {
					w.once(0)
				}
			})
		})
	}
}
