//go:build integration || long

package dynamostate

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

// A fleet at rest moves nothing, and asks little: not each worker about each shard, or
// about each other worker.
func TestFleetAtRest(t *testing.T) {
	if localtest.Elsewhere(t) { // hours
		return
	}
	for _, tt := range []struct{ workers, shards int }{{1, 1}, {4, 64}, {16, 16}} {
		t.Run(fmt.Sprint(tt.workers, " workers"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, tt.workers, tt.shards)
				time.Sleep(2 * time.Minute)
				began, before := f.requests.Load(), f.owners()
				const minutes = 10 // one look at each row
				time.Sleep(minutes * time.Minute)
				want := workload{workers: float64(tt.workers), shards: float64(tt.shards), life: math.MaxInt64}.requests("heartbeats", "looks", "lists of workers", "looks at shards")
				if n := float64(f.requests.Load()-began) / minutes / 60; math.Abs(n-want) > 0.02*want {
					t.Errorf("%.2f requests a second, the model says %.2f", n, want)
				}
				if after := f.owners(); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Errorf("owners were %v and are %v", before, after)
				}
			})
		})
	}
}

// All shards of a killed worker have another owner soon: at the latest when the next
// worker looks after the last heartbeat, and has watched for silentAfter.
func TestFleetTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, 64)
		for kill := range 3 {
			time.Sleep(time.Minute + time.Duration(kill)*270*time.Millisecond)
			f.workers[kill].dead.Store(true)
			killed := time.Now()
			for f.owners()[f.workers[kill].name] > 0 {
				time.Sleep(50 * time.Millisecond)
				if time.Since(killed) > time.Minute {
					t.Fatalf("a minute after the kill of %s: %v", f.workers[kill].name, f.owners())
				}
			}
			if took := time.Since(killed); took > 6*time.Second || took < silentAfter-time.Second {
				t.Errorf("kill %d: others have its shards after %v", kill, took)
			} else {
				t.Logf("kill %d: %v", kill, took)
			}
		}
	})
}

// When two neighbours die at once, and when a worker has died before others began.
func TestFleetTakesOverTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 5, 50)
		time.Sleep(time.Minute)
		f.workers[1].dead.Store(true)
		f.workers[2].dead.Store(true)
		time.Sleep(30 * time.Second)
		if got := f.owners(); got["w01"]+got["w02"] > 0 {
			t.Errorf("30 s after two kills: %v", got)
		}
	})
}

// A shard that a living worker releases is claimed soon, by the next worker at the
// latest.
func TestFleetSeesReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, 64)
		time.Sleep(time.Minute)
		w := f.workers[1]
		id := f.shards[1]
		if err := w.Release(t.Context(), w.mine[id]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		all, err := over(f.table).Shards(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		for _, sh := range all {
			if sh.ID == id && (sh.Owner == "" || sh.Owner == w.name) {
				t.Errorf("4 s after the release: %+v", sh)
			}
		}
	})
}

// The end of a shard takes no requests of workers that have others.
func TestFleetIgnoresEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, 64)
		minute := func() int64 {
			before := f.requests.Load()
			time.Sleep(time.Minute)
			return f.requests.Load() - before
		}
		time.Sleep(time.Minute)
		rest, w, id := minute(), f.workers[1], f.shards[1]
		errs := w.Checkpoint(t.Context(), []state.Checkpoint{{Lease: w.mine[id], Position: state.Position{Finished: true}}})
		if err := errors.Join(append(errs, w.Release(t.Context(), w.mine[id]))...); err != nil {
			t.Fatal(err)
		}
		if n := minute(); n > rest+5 {
			t.Errorf("%d requests in the minute after the end of a shard, %d before", n, rest)
		}
	})
}

// The next owner is the first living one of another Store.
func TestNextOf(t *testing.T) {
	row := func(watched time.Duration, fenced bool) *sighting {
		return &sighting{row: rows.Row{Token: "x"}, watched: watched, stored: storedMember{Fenced: fenced}}
	}
	seen := map[string]*sighting{"a": row(0, false), "b": row(lookNext-1, false), "c": row(0, true), "d": row(lookNext, false), "e": row(0, false), "f": row(0, false)}
	for _, tt := range []struct {
		own  []string
		want string
	}{
		{[]string{"a"}, "[a b]"},
		{[]string{"a", "b"}, "[a b d e]"}, // c is dead, and d seems silent
		{[]string{"f"}, "[a f]"},
		{nil, "[a b d e f]"},
	} {
		own := map[string]bool{}
		for _, name := range tt.own {
			own[name] = true
		}
		if got := fmt.Sprint(slices.Sorted(maps.Keys(nextOf(seen, own)))); got != tt.want {
			t.Errorf("after %v: %s, want %s", tt.own, got, tt.want)
		}
	}
}

// Time to live deletes the row of a dead member a week later.
func TestFencedRowExpires(t *testing.T) {
	table := new(memory)
	s := over(table)
	if _, err := s.Claim(t.Context(), stream, testShard, "", "owner"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, m, err := fetch[storedMember](t.Context(), table, memberKey("app", "owner")); err != nil || time.Until(time.Unix(m.Expires, 0)).Round(time.Hour) != keepFenced {
		t.Errorf("%+v, %v; want it to expire in %v", m, err, keepFenced)
	}
}

// A worker that stalls for 2.5 s now and then keeps its shards.
func TestStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		owner, observer := over(table), over(table)
		if _, err := owner.Claim(t.Context(), stream, testShard, "", "owner"); err != nil {
			t.Fatal(err)
		}
		var beating sync.WaitGroup
		t.Cleanup(beating.Wait)
		beating.Go(func() {
			for i := 0; t.Context().Err() == nil; i++ {
				if err := owner.Heartbeat(t.Context(), "owner"); err != nil && t.Context().Err() == nil {
					t.Errorf("heartbeat %d: %v", i, err)
				}
				time.Sleep(time.Second)
				if i%3 == 0 {
					time.Sleep(2500 * time.Millisecond)
				}
			}
		})
		for i := range 6000 {
			if sh, err := observer.Claim(t.Context(), stream, testShard, "", "observer"); !errors.Is(err, state.ErrHeld) {
				t.Fatalf("after %d claims: %+v, %v", i, sh, err)
			}
			time.Sleep(time.Duration(90+i%7) * time.Millisecond)
		}
	})
}
