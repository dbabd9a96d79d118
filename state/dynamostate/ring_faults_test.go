//go:build integration || long

package dynamostate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

func beating(t *testing.T, s *Store, name string) {
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	wg.Go(func() {
		for t.Context().Err() == nil {
			if err := s.Heartbeat(t.Context(), name); err != nil && t.Context().Err() == nil {
				t.Errorf("heartbeat of %s: %v", name, err)
				return
			}
			time.Sleep(time.Second)
		}
	})
}

// Two owners of one Store: the first claims its own shard again.
func TestOwnShardOfASharedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := over(new(memory))
		if _, err := s.Claim(t.Context(), stream, testShard, "", "a"); err != nil {
			t.Fatal(err)
		}
		beating(t, s, "a")
		for range 3 {
			if _, err := s.Claim(t.Context(), stream, testShard, "", "b"); !errors.Is(err, state.ErrHeld) {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		_, err := s.Claim(t.Context(), stream, testShard, "", "a")
		for first := err; err != nil; _, err = s.Claim(t.Context(), stream, testShard, "", "a") {
			time.Sleep(time.Second)
			if time.Since(begun) > 20*time.Minute {
				t.Fatal(err)
			}
			_ = first
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("a claims its own shard after %v", took)
		}
	})
}

// A release is made, but its response is lost.
func TestReleaseWhoseResponseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Bool
		table := &memory{Fault: func(call string, k rows.Key) mishap {
			if lost.Load() && call == "Write" && k.Sort == testShard {
				return mishap{Err: errLost, Made: true}
			}
			return mishap{}
		}}
		a, b := over(table), over(table)
		sh, err := a.Claim(t.Context(), stream, testShard, "", "a")
		if err != nil {
			t.Fatal(err)
		}
		beating(t, a, "a")
		for range 20 {
			if _, err := b.Claim(t.Context(), stream, testShard, "", "b"); !errors.Is(err, state.ErrHeld) {
				t.Fatal(err)
			}
			time.Sleep(500 * time.Millisecond)
		}
		lost.Store(true)
		if err := a.Release(t.Context(), state.Lease{Stream: stream, ShardID: testShard, Owner: "a", Epoch: sh.Epoch}); !errors.Is(err, errLost) {
			t.Fatal(err)
		}
		lost.Store(false)
		all, _ := a.Shards(t.Context(), stream)
		begun := time.Now()
		for {
			if _, err := b.Claim(t.Context(), stream, testShard, "", "b"); err == nil {
				break
			}
			time.Sleep(500 * time.Millisecond)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("the shard %+v was claimed %v after its release", all[0], took)
		}
	})
}

// Members that died without a shard stay in the ring.
func TestCorpsesInTheRing(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, 64)
		for i := range 4 { // each killed just after its last release, or standing by
			s, name := over(f.table), fmt.Sprintf("w%02d-corpse", i)
			if err := s.members.join(t.Context(), "app", name); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Minute)
		n := 0
		for row := range f.table.List(t.Context(), membersOf("app"), "", 0) {
			m, err := decode[storedMember](row)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(row.Sort, "corpse") && !m.Fenced && m.Expires == 0 {
				n++
			}
		}
		t.Logf("%d of 4 dead members are not fenced and never expire", n)
		var worst time.Duration
		for kill := range 3 {
			time.Sleep(time.Minute + time.Duration(kill)*3270*time.Millisecond)
			f.workers[kill].dead.Store(true)
			killed := time.Now()
			for f.owners()[f.workers[kill].name] > 0 {
				time.Sleep(50 * time.Millisecond)
			}
			worst = max(worst, time.Since(killed))
			t.Logf("kill %d: %v", kill, time.Since(killed))
		}
		if worst > 6*time.Second || n > 0 {
			t.Errorf("others have its shards after %v; %d corpses", worst, n)
		}
	})
}

// A row that is missing when it is seen, and made a moment later under the same name.
func TestRobbedByAStaleSighting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		old, again, thief := over(table), over(table), over(table)
		for _, id := range []string{"s1", "s2"} {
			if _, err := old.Claim(t.Context(), stream, id, "", "pod-0"); err != nil {
				t.Fatal(err)
			}
		}
		_ = old.Close() // fenced; the shards keep its name
		row, _ := table.Get(t.Context(), memberKey("app", "pod-0"))
		_ = table.Delete(t.Context(), row) // by time to live
		if _, err := thief.Claim(t.Context(), stream, "s1", "", "thief"); err != nil {
			t.Fatal(err)
		}
		sh, err := again.Claim(t.Context(), stream, "s2", "", "pod-0")
		if err != nil {
			t.Fatal(err)
		}
		got, err := thief.Claim(t.Context(), stream, "s2", "", "thief")
		if err == nil {
			t.Errorf("%+v was claimed of a living owner: %+v; its heartbeat: %v", sh, got, again.Heartbeat(t.Context(), "pod-0"))
		}
	})
}

// slow makes a request after a while, whatever becomes of its caller.
type sluggish struct {
	*memory
	write atomic.Int64 // time.Duration, to members
	read  atomic.Int64
	lose  atomic.Bool
	under sync.WaitGroup
}

func (s *sluggish) Get(ctx context.Context, k rows.Key) (rows.Row, error) {
	if d := time.Duration(s.read.Load()); d > 0 {
		time.Sleep(d)
	}
	return s.memory.Get(ctx, k)
}

func (s *sluggish) Write(ctx context.Context, seen rows.Row, set map[string]types.AttributeValue) (rows.Row, error) {
	d := time.Duration(s.write.Load())
	if d == 0 || !strings.HasPrefix(seen.Partition, "members") {
		return s.memory.Write(ctx, seen, set)
	}
	type answer struct {
		row rows.Row
		err error
	}
	done := make(chan answer, 1)
	s.under.Go(func() {
		time.Sleep(d / 2)
		row, err := s.memory.Write(context.WithoutCancel(ctx), seen, set)
		time.Sleep(d / 2)
		done <- answer{row, err}
	})
	select {
	case a := <-done:
		if s.lose.Swap(false) {
			return rows.Row{}, errLost
		}
		return a.row, a.err
	case <-ctx.Done():
		return rows.Row{}, ctx.Err()
	}
}

// The table takes a while for each write.
func TestSlowTable(t *testing.T) {
	for _, d := range []time.Duration{400 * time.Millisecond, 600 * time.Millisecond, 900 * time.Millisecond, 1100 * time.Millisecond} {
		t.Run(d.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := &sluggish{memory: new(memory)}
				t.Cleanup(table.under.Wait)
				owner, observer := over(table), over(table.memory)
				if _, err := owner.Claim(t.Context(), stream, testShard, "", "owner"); err != nil {
					t.Fatal(err)
				}
				table.write.Store(int64(d))
				var good, bad, fenced atomic.Int64
				var wg sync.WaitGroup
				t.Cleanup(wg.Wait)
				begun := time.Now()
				var proof atomic.Int64
				wg.Go(func() {
					for i := 0; t.Context().Err() == nil; i++ {
						if i == 5 {
							table.lose.Store(true)
						}
						err := owner.Heartbeat(t.Context(), "owner")
						switch {
						case errors.Is(err, state.ErrFenced):
							fenced.Add(1)
							return
						case err != nil:
							bad.Add(1)
						default:
							good.Add(1)
							proof.Store(int64(time.Since(begun)))
						}
						if err != nil {
							time.Sleep(250 * time.Millisecond)
							continue
						}
						time.Sleep(time.Second)
					}
				})
				for time.Since(begun) < time.Minute {
					if _, err := observer.Claim(t.Context(), stream, testShard, "", "observer"); err == nil {
						t.Errorf("fenced after %v", time.Since(begun))
						break
					}
					time.Sleep(500 * time.Millisecond)
				}
				if bad.Load() > 3 || fenced.Load() > 0 {
					t.Errorf("writes take %v: %d heartbeats succeed, %d fail; the last success %v after the begin", d, good.Load(), bad.Load(), time.Duration(proof.Load()))
				}
			})
		})
	}
}

// One row of an owner cannot be read.
func TestOneBadMember(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		dead, young := over(table), over(table)
		for i := range 64 {
			if _, err := dead.Claim(t.Context(), stream, fmt.Sprint("shard", i), "", "dead"); err != nil {
				t.Fatal(err)
			}
		}
		bad := encode(storedMember{Store: "x"})
		bad[formatName] = &types.AttributeValueMemberN{Value: "2"}
		if _, err := table.Write(t.Context(), rows.Row{Key: memberKey("app", "zz")}, bad); err != nil {
			t.Fatal(err)
		}
		var last error
		free := 0
		for range 240 {
			for i := range 64 {
				if _, err := young.Claim(t.Context(), stream, fmt.Sprint("shard", i), "", "young"); err == nil {
					free++
				} else {
					last = err
				}
			}
			time.Sleep(500 * time.Millisecond)
		}
		if free < 64 {
			t.Errorf("in 2 minutes %d of 64 shards of a dead owner are claimed: %v", free, last)
		}
	})
}

// Requests while owners cannot be listed.
func TestRequestsInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int64
		var down atomic.Bool
		table := &memory{Fault: func(call string, k rows.Key) mishap {
			requests.Add(1)
			if down.Load() && strings.HasPrefix(k.Partition, "members") {
				return mishap{Err: errLost}
			}
			return mishap{}
		}}
		owner, young := over(table), over(table)
		for i := range 64 {
			if _, err := owner.Claim(t.Context(), stream, fmt.Sprint("shard", i), "", "owner"); err != nil {
				t.Fatal(err)
			}
		}
		round := func() {
			for i := range 64 {
				_, _ = young.Claim(t.Context(), stream, fmt.Sprint("shard", i), "", "young")
			}
			time.Sleep(500 * time.Millisecond)
		}
		for range 4 {
			_ = owner.Heartbeat(t.Context(), "owner")
			round()
		}
		down.Store(true)
		time.Sleep(11 * time.Second)
		before := requests.Load()
		for range 20 {
			round()
		}
		if n := (requests.Load() - before) / 10; n > 10 {
			t.Errorf("%d requests a second while the owners cannot be read", n)
		}
	})
}

// Two applications under one owner's name share the second of a heartbeat.
func TestHeartbeatOfTwoApplications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &sluggish{memory: new(memory)}
		t.Cleanup(table.under.Wait)
		s := over(table)
		for _, app := range []string{"a", "b", "c"} {
			if _, err := s.Claim(t.Context(), state.Stream{Application: app, ARN: stream.ARN}, testShard, "", "owner"); err != nil {
				t.Fatal(err)
			}
		}
		table.write.Store(int64(400 * time.Millisecond))
		failed := 0
		for range 10 {
			if s.Heartbeat(t.Context(), "owner") != nil {
				failed++
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		if failed > 0 {
			t.Errorf("%d of 10 heartbeats fail at 0.4 s a write", failed)
		}
	})
}
