//go:build integration || long

package dynamostate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
)

func TestPlan(t *testing.T) {
	for _, tt := range []struct {
		loads []load
		want  string // what each gives
	}{
		{[]load{{"a", 5, 0}}, "map[]"},
		{[]load{{"a", 3, 0}, {"b", 2, 0}}, "map[]"},
		{[]load{{"a", 8, 0}, {"b", 0, 0}}, "map[a:[{b 4}]]"},
		{[]load{{"a", 3, 0}, {"b", 0, 0}}, "map[a:[{b 1}]]"},
		{[]load{{"a", 1, 0}, {"b", 1, 0}, {"c", 0, 0}}, "map[]"},
		{[]load{{"a", 64, 0}, {"b", 60, 0}, {"c", 62, 0}}, "map[]"}, // small
		{[]load{{"d", 0, 0}, {"a", 256, 0}, {"c", 0, 0}, {"b", 0, 0}}, "map[a:[{d 64} {c 64} {b 64}]]"},
		{[]load{{"a", 9, 0}, {"b", 9, 0}, {"c", 0, 0}}, "map[a:[{c 3}] b:[{c 3}]]"},
	} {
		got := map[string][]move{}
		for _, l := range tt.loads {
			if m := plan(l.name, tt.loads); m != nil {
				got[l.name] = m
			}
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("of %v: %v, want %s", tt.loads, got, tt.want)
		}
	}
}

// Whatever the loads: if anything moves, everybody has the same share then, and nobody
// both gives and takes.
func TestPlansOfAllAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		loads := make([]load, 1+r.IntN(12))
		after := map[string]int{}
		total := 0
		for i := range loads {
			loads[i] = load{fmt.Sprint("w", i), r.IntN(1 + r.IntN(300)), 0}
			after[loads[i].name] = loads[i].shards
			total += loads[i].shards
		}
		gave, took := map[string]bool{}, map[string]bool{}
		for _, l := range loads {
			for _, m := range plan(l.name, loads) {
				after[l.name] -= m.shards
				after[m.to] += m.shards
				gave[l.name], took[m.to] = true, true
			}
		}
		for name, n := range after {
			if len(gave) > 0 && n != total/len(loads) && n != total/len(loads)+1 || gave[name] && took[name] {
				t.Fatalf("of %v: %v", loads, after)
			}
		}
	}
}

func TestDivide(t *testing.T) {
	for want, got := range map[string][]move{
		"[]":              divide(5, nil),
		"[{a 2} {b 3}]":   divide(5, []load{{"a", 1, 0}, {"b", 0, 0}}),
		"[{b 5}]":         divide(5, []load{{"a", 10, 0}, {"b", 0, 0}}),
		"[{a 2} {b 2}]":   divide(4, []load{{"a", 7, 0}, {"b", 7, 0}}),
		"[{a 65} {b 64}]": divide(129, []load{{"a", 0, 0}, {"b", 0, 0}}),
	} {
		if fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

// Three workers join one that has all shards. Each shard moves once at most, and then
// all rest.
func TestFleetScalesOut(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, 256)
		time.Sleep(30 * time.Second)
		f.moved()
		f.grow(3)
		took := f.balanced(1, 20*time.Second)
		t.Log("balanced after", took)
		if took > 10*time.Second {
			t.Errorf("balanced after %v", took)
		}
		if times := f.moved(); len(times) != 1 || times[1] != 192 {
			t.Errorf("claims by number of times: %v, want 192 shards claimed once", times)
		}
		before := fmt.Sprint(f.owners())
		time.Sleep(3 * time.Minute)
		if after := fmt.Sprint(f.owners()); after != before {
			t.Errorf("owners were %s and are %s", before, after)
		}
	})
}

// Workers that end give their shards away, to all alike. Each shard moves once.
func TestFleetScalesIn(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, 64)
		time.Sleep(10 * time.Minute) // nobody is new
		f.moved()
		f.stop(f.workers[1])
		took := f.balanced(1, 20*time.Second)
		t.Log("balanced after", took)
		if times := f.moved(); took > 6*time.Second || len(times) != 1 || times[1] != 16 {
			t.Errorf("after %v: claims by number of times: %v, want 16 shards claimed once", took, times)
		}
	})
}

// In a rolling deployment a new worker joins before an old one ends, again and again.
// No shard moves more than twice.
func TestFleetRollsOut(t *testing.T) {
	if localtest.Elsewhere(t) { // hours
		return
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, 64)
		time.Sleep(10 * time.Minute)
		f.moved()
		for i := range 4 {
			f.grow(1)
			time.Sleep(20 * time.Second)
			f.stop(f.workers[i])
			time.Sleep(20 * time.Second)
		}
		f.balanced(3, 3*time.Minute)
		times := f.moved()
		t.Log("claims by number of times:", times)
		for n := range times {
			if n > 2 {
				t.Errorf("claims by number of times: %v", times)
			}
		}
	})
}

// The shards of a killed worker go to the others, soon. Who learns late of its end may
// find none: the shards are balanced when no worker has come in its place.
func TestFleetDividesTheShardsOfTheDead(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, 256)
		time.Sleep(time.Minute)
		f.workers[2].dead.Store(true)
		killed := time.Now()
		for f.owners()["w02"] > 0 {
			time.Sleep(50 * time.Millisecond)
		}
		took := time.Since(killed)
		t.Logf("after %v: %v", took, f.owners())
		if took > 6*time.Second {
			t.Errorf("all shards have an owner after %v", took)
		}
		f.balanced(1, replaceFor+20*time.Second)
	})
}

// Who finds a dead worker takes its share, and leaves the rest to others for a moment.
func TestShareOfTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		dead, finder, other := over(table), over(table), over(table)
		claim := func(s *Store, id, owner string) error {
			_, err := s.Claim(t.Context(), stream, id, "", owner)
			return err
		}
		ids := []string{"s1", "s2", "s3", "s4", "s5", "s6"}
		if _, err := dead.Moves(t.Context(), "dead", false, noWork); err != nil { // it takes shards
			t.Fatal(err)
		}
		for _, id := range ids {
			if err := claim(dead, id, "dead"); err != nil {
				t.Fatal(err)
			}
		}
		if err := dead.Heartbeat(t.Context(), "dead"); err != nil {
			t.Fatal(err)
		}
		if err := claim(other, "s1", "other"); !errors.Is(err, state.ErrHeld) { // joins
			t.Fatal(err)
		}
		var beating sync.WaitGroup
		t.Cleanup(beating.Wait)
		beating.Go(func() {
			for t.Context().Err() == nil {
				_, _ = finder.Moves(t.Context(), "finder", false, noWork)
				_, _ = other.Moves(t.Context(), "other", false, noWork)
				_ = finder.Heartbeat(t.Context(), "finder")
				_ = other.Heartbeat(t.Context(), "other")
				time.Sleep(time.Second)
			}
		})
		for claim(finder, "s1", "finder") != nil {
			time.Sleep(100 * time.Millisecond)
		}
		took := func() (n int) {
			for _, id := range ids {
				switch err := claim(finder, id, "finder"); {
				case err == nil:
					n++
				case !errors.Is(err, state.ErrHeld):
					t.Error(err)
				}
			}
			return n
		}
		if n := took(); n != 3 {
			t.Errorf("the finder has %d of 6 shards, want 3", n)
		}
		time.Sleep(shareFor)
		if n := took(); n != 6 {
			t.Errorf("then the finder has %d of 6 shards, want all", n)
		}
	})
}

// A message to a member is no sign of its life.
func TestNewsIsNoHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		if _, err := over(table).Claim(t.Context(), stream, testShard, "", "dead"); err != nil {
			t.Fatal(err)
		}
		young, died := over(table), time.Now()
		for {
			if _, err := young.Claim(t.Context(), stream, testShard, "", "young"); err == nil {
				break
			}
			row, err := table.Get(t.Context(), memberKey("app", "dead"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := table.Write(t.Context(), row, map[string]types.AttributeValue{}); err != nil {
				t.Fatal(err)
			}
			if time.Since(died) > time.Minute {
				t.Fatal("a dead member to which others write is never found dead")
			}
			time.Sleep(400 * time.Millisecond)
		}
		if took := time.Since(died); took < silentAfter || took > silentAfter+2*time.Second {
			t.Errorf("the shard of a dead member is free after %v", took)
		}
	})
}

// A shard is released for an owner that does not claim it: others wait for a while, and
// nothing is offered to that owner again.
func TestReservationEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		giver, idle, other := over(table), over(table), over(table)
		claim := func(s *Store, id, owner string) (state.Lease, error) {
			sh, err := s.Claim(t.Context(), stream, id, "", owner)
			return state.Lease{Stream: stream, ShardID: id, Owner: owner, Epoch: sh.Epoch}, err
		}
		var leases []state.Lease
		for _, id := range []string{"s1", "s2"} {
			l, err := claim(giver, id, "giver")
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, l)
		}
		for _, id := range []string{"s1", "s2"} { // join
			if _, err := claim(idle, id, "idle"); !errors.Is(err, state.ErrHeld) {
				t.Fatal(err)
			}
			if _, err := claim(other, id, "other"); !errors.Is(err, state.ErrHeld) {
				t.Fatal(err)
			}
		}
		var beating sync.WaitGroup
		t.Cleanup(beating.Wait)
		beating.Go(func() {
			for t.Context().Err() == nil {
				_ = giver.Heartbeat(t.Context(), "giver")
				_ = idle.Heartbeat(t.Context(), "idle")
				_ = other.Heartbeat(t.Context(), "other")
				time.Sleep(time.Second)
			}
		})
		if _, err := idle.Moves(t.Context(), "idle", false, noWork); err != nil {
			t.Fatal(err)
		}
		moves := func() []state.Lease {
			t.Helper()
			for range 100 {
				got, err := giver.Moves(t.Context(), "giver", false, noWork)
				if err != nil {
					t.Fatal(err)
				}
				if len(got) > 0 {
					return got
				}
				time.Sleep(250 * time.Millisecond)
			}
			return nil
		}
		got := moves()
		if len(got) != 1 || got[0] != leases[0] {
			t.Fatalf("moves %v, want the lease that is held longest", got)
		}
		if err := giver.Release(t.Context(), got[0]); err != nil {
			t.Fatal(err)
		}
		released := time.Now()
		for _, err := claim(other, "s1", "other"); err != nil; _, err = claim(other, "s1", "other") {
			if !errors.Is(err, state.ErrHeld) || time.Since(released) > time.Minute {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(released); took < reservedFor-time.Second || took > reservedFor+time.Second {
			t.Errorf("another has the shard after %v, want about %v", took, reservedFor)
		}
	})
}

// Without others that take shards an owner keeps its own, also when it stops.
func TestNobodyToGiveTo(t *testing.T) {
	s := over(new(memory))
	if _, err := s.Claim(t.Context(), stream, testShard, "", "me"); err != nil {
		t.Fatal(err)
	}
	for _, leaving := range []bool{false, true} {
		if got, err := s.Moves(context.Background(), "me", leaving, noWork); err != nil || len(got) > 0 {
			t.Errorf("moves %v, %v", got, err)
		}
	}
}

func noWork(state.Lease) float64 { return 0 }
