//go:build integration || long

package dynamostate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
)

// works sets the work of each shard.
func (f *fleet) works(work map[string]float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.work = work
}

// loads returns the number of shards and the work of each worker.
func (f *fleet) loads() map[string]load {
	f.t.Helper()
	all, err := over(f.table).Shards(f.t.Context(), stream)
	if err != nil {
		f.t.Fatal(err)
	}
	loads := make(map[string]load)
	for _, sh := range all {
		l := loads[sh.Owner]
		loads[sh.Owner] = load{sh.Owner, l.shards + 1, l.work + int(f.workOf(state.Lease{ShardID: sh.ID}))}
	}
	return loads
}

// rests fails if a shard moves within d.
func (f *fleet) rests(d time.Duration) {
	f.t.Helper()
	f.moved()
	time.Sleep(d)
	if times := f.moved(); len(times) > 0 {
		f.t.Errorf("claims by number of times: %v, want none in %v", times, d)
	}
}

// One of four workers has all busy shards. After some exchanges each has as many shards
// as before, and its part of the work. Then nothing moves.
func TestFleetSharesWork(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, 24)
		work := make(map[string]float64)
		for i := 0; i < 24; i += 4 {
			work[f.shards[i]] = 500
		}
		f.works(work)
		f.rests(4 * time.Minute) // who knows how busy they are
		time.Sleep(20 * time.Minute)
		t.Log("claims by number of times:", f.moved())
		for name, l := range f.loads() {
			if l.shards < 5 || l.shards > 7 || l.work < 500 || l.work > 1000 {
				t.Errorf("%s has %d shards with work %d, want about 6 and 750", name, l.shards, l.work)
			}
		}
		f.rests(20 * time.Minute)
	})
}

// A worker whose shards have nothing to do any more gets work of another.
func TestFleetSharesWorkWithAWorkerThatHasNoneAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, 8)
		work := make(map[string]float64)
		for _, id := range f.shards {
			work[id] = 200
		}
		f.works(work)
		time.Sleep(10 * time.Minute)
		all, err := over(f.table).Shards(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		left := make(map[string]float64)
		for _, sh := range all {
			if sh.Owner == all[0].Owner {
				left[sh.ID] = 200
			}
		}
		f.works(left)
		time.Sleep(20 * time.Minute)
		for name, l := range f.loads() {
			if l.work != 400 {
				t.Errorf("%s has %d shards with work %d, want 400", name, l.shards, l.work)
			}
		}
	})
}

// Whatever the rates: no worker has more work than before, and all rest in the end.
func TestFleetOfAnyWorkRests(t *testing.T) {
	if localtest.Elsewhere(t) { // hours
		return
	}
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 1))
				f := newFleet(t, 2+r.IntN(4), 3+r.IntN(20))
				work := make(map[string]float64)
				for _, id := range f.shards {
					work[id] = math.Floor(1000 * math.Pow(r.Float64(), 4))
				}
				f.works(work)
				most := func() (most int) {
					for _, l := range f.loads() {
						most = max(most, l.work)
					}
					return most
				}
				before := most()
				time.Sleep(time.Hour)
				if after := most(); after > before+farApart {
					t.Errorf("the busiest worker had work %d and has %d: %v", before, after, f.loads())
				}
				f.rests(20 * time.Minute)
			})
		})
	}
}

func TestExchange(t *testing.T) {
	loads := []load{{"a", 4, 900}, {"b", 4, 100}, {"c", 4, 160}, {"d", 4, 200}, {"e", 4, 150}}
	for me, want := range map[string]string{"a": "b 400", "b": " 0", "c": " 0", "d": " 0", "e": " 0"} {
		to, work := exchange(me, loads)
		if got := fmt.Sprint(to, " ", work); got != want {
			t.Errorf("%s gives %q, want %q", me, got, want)
		}
	}
}

// held returns leases with that work, s0, s1 and so on; negative: unknown.
func held(work ...float64) (all []heldLease) {
	for i, w := range work {
		h := heldLease{Lease: state.Lease{ShardID: fmt.Sprint("s", i)}, since: time.Now().Add(-time.Hour), work: w}
		if w < 0 {
			h.since = time.Now()
		}
		all = append(all, h)
	}
	return all
}

func TestPick(t *testing.T) {
	for _, tt := range []struct {
		held []heldLease
		n    int
		work float64
		want string
	}{
		{held(500, 0, 3, 500), 1, 0, "s1"},
		{held(500, 0, 3, 500), 1, -400, "s1"},
		{held(500, 0, 3, 400), 2, 500, "s3 s2"},
		{held(0, 0, 0), 2, 0, "s0 s1"},
		{held(-1, 700, -1), 2, 0, "s1 s0"},
		{held(-1, 1), 5, 0, "s1 s0"},
	} {
		if got := names(pick(tt.held, tt.n, tt.work)); got != tt.want {
			t.Errorf("%d of %v with work %v: %s, want %s", tt.n, tt.held, tt.work, got, tt.want)
		}
	}
}

func TestBusiest(t *testing.T) {
	for _, tt := range []struct {
		held []heldLease
		work float64
		want string
	}{
		{held(50, 50), 50, "s0"},
		{held(60, 40), 50, "s1"},
		{held(80, 20), 50, ""}, // too little
		{held(10, 30, 20, 0), 60, "s1 s2 s0"},
		{held(-1, 30), 60, "s1"},
		{held(-1, -1), 60, ""},
	} {
		if got := names(busiest(tt.held, tt.work)); got != tt.want {
			t.Errorf("work %v of %v: %q, want %q", tt.work, tt.held, got, tt.want)
		}
	}
}

func names(held []heldLease) (all string) {
	for i, h := range held {
		if i > 0 {
			all += " "
		}
		all += h.ShardID
	}
	return all
}
