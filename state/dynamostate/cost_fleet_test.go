//go:build integration || long

package dynamostate

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// ownFirst is a Store that claims its own shards before those of others.
type ownFirst struct {
	*Store
	mine func(id string) bool
}

func (o ownFirst) Claim(ctx context.Context, st state.Stream, id, parent, owner string) (state.Shard, error) {
	if !o.mine(id) {
		return state.Shard{}, state.ErrHeld
	}
	return o.Store.Claim(ctx, st, id, parent, owner)
}

// Workers use the table as the model of the documented costs says.
func TestFleetCosts(t *testing.T) {
	if localtest.Elsewhere(t) { // hours
		return
	}
	for _, workers := range []int{1, 4} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) { testCosts(t, workers) })
	}
}

func testCosts(t *testing.T, workers int) {
	synctest.Test(t, func(t *testing.T) {
		const shards = 12
		svc := streamtest.NewService(t)
		orders := svc.CreateTable("orders", streamtest.TableOptions{Shards: shards})
		table := &meter{Table: new(memory), used: make(map[string]usage)}
		turn, begun := make(map[string]int), time.Now()
		for i, sh := range orders.Shards() {
			turn[sh.ID] = i % workers
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		t.Cleanup(running.Wait)
		t.Cleanup(stop)
		for i := range workers {
			mine := func(id string) bool { return turn[id] == i || time.Since(begun) > 10*time.Second }
			r := router.New()
			r.Handle("*#*", func(context.Context, *sluice.Record) error { return nil })
			p, err := poller.New(svc.Config(), r, poller.Options{Application: "sluice", Streams: []poller.Stream{{Table: "orders"}}, Start: poller.TrimHorizon,
				Store: ownFirst{over(table), mine}, IdleInterval: 10 * time.Second, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			running.Go(func() {
				if err := p.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		check := func(what string, w workload, during time.Duration) {
			t.Helper()
			model, used := make(map[string]usage), table.drain()
			for purpose, u := range w.perSecond() {
				kind := "shards"
				if purpose == "heartbeats" || purpose == "looks" || purpose == "lists of workers" {
					kind = "members"
				}
				model[kind] = model[kind].add(u.times(during.Seconds()))
			}
			used["shards"] = used["shards"].add(used["streams"])
			delete(used, "streams")
			if len(used) != 2 {
				t.Errorf("%s: rows of kinds that the model does not have: %v", what, used)
			}
			for kind, want := range model {
				got := used[kind]
				for _, n := range [][2]float64{{got.writes, want.writes}, {got.reads, want.reads}, {got.readUnits, want.readUnits}} {
					if math.Abs(n[0]-n[1]) > max(spread, 0.05*n[1]) {
						t.Errorf("%s: rows of %s: %+v are used, the model says %.0f", what, kind, got, want)
						break
					}
				}
			}
		}

		time.Sleep(5*time.Minute + 15*time.Second)
		table.drain()
		const rest = 10 * time.Minute // one look at each shard of others
		time.Sleep(rest)
		check("at rest", workload{workers: float64(workers), shards: shards, life: math.MaxInt64}, rest)

		const ends = 20 // in ten minutes: one look at each shard of others
		for i := range ends {
			orders.Roll(orders.Shards()[i].ID)
			time.Sleep(30 * time.Second)
		}
		check("while shards end", workload{workers: float64(workers), shards: shards, life: shards * 30 * time.Second}, ends*30*time.Second)

		keys := make(map[string]string) // by shard
		for i := 0; len(keys) < shards; i++ {
			key := fmt.Sprint(i)
			orders.Put(map[string]any{"pk": key})
			all := orders.Changes()
			keys[all[len(all)-1].ShardID] = key
		}
		time.Sleep(10 * time.Second)
		table.drain()
		const busy = 30
		for n := range busy {
			for _, key := range keys {
				orders.Put(map[string]any{"pk": key, "n": n})
			}
			time.Sleep(time.Second)
		}
		check("busy", workload{workers: float64(workers), shards: shards, life: math.MaxInt64, busy: true}, busy*time.Second)
	})
}
