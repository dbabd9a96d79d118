package dynamostate

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/state"
)

// A record ends each worker that reads it, and each is replaced. After a few deaths its
// shard waits, and all others are read.
func TestDeadlyShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3, 24)
		time.Sleep(time.Minute)
		f.deadly = f.shards[5]
		f.workers[2].dead.Store(true) // the owner of the shard, right after it began
		row, err := f.table.Get(t.Context(), shardKey(stream, f.deadly))
		if err != nil {
			t.Fatal(err)
		}
		sh, err := decode[storedShard](row)
		if err != nil {
			t.Fatal(err)
		}
		sh.Beat = 60
		if _, err := f.table.Write(t.Context(), row, encode(sh)); err != nil {
			t.Fatal(err)
		}
		deaths := func() (n int) {
			for _, w := range f.workers {
				if w.dead.Load() {
					n++
				}
			}
			return n
		}
		began := time.Now()
		for time.Since(began) < 9*time.Minute {
			time.Sleep(5 * time.Second)
			for living := len(f.workers) - deaths(); living < 3; living++ {
				f.grow(1)
			}
		}
		if n := deaths(); n != deadlyAfter+1 {
			t.Errorf("%d workers have died in 9 minutes, want %d", n, deadlyAfter+1)
		}
		for _, w := range f.workers {
			if n := f.owners()[w.name]; w.dead.Load() && n > 1 {
				t.Errorf("%s is dead and has %d shards", w.name, n)
			}
		}
		w := f.workers[len(f.workers)-1]
		if _, err := w.Claim(t.Context(), stream, f.deadly, "", w.name); !errors.Is(err, state.ErrDeadly) || !strings.Contains(err.Error(), "after record the beginning") {
			t.Errorf("claim of the deadly shard: %v, want ErrDeadly", err)
		}
	})
}

// Deaths long after the claim, or after some progress, say nothing of the shard.
func TestHarmlessShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		position := 0
		for i := range 12 {
			w := &worker{Store: over(table), name: string(rune('a' + i))}
			sh, err := w.claimSoon(t)
			if err != nil {
				t.Fatalf("claim %d: %v", i, err)
			}
			if i%2 == 0 {
				for range deadlyWithin + 1 {
					time.Sleep(time.Second)
					if err := w.Heartbeat(t.Context(), w.name); err != nil {
						t.Fatal(err)
					}
				}
				continue
			}
			position++
			c := state.Checkpoint{Lease: state.Lease{Stream: stream, ShardID: testShard, Owner: w.name, Epoch: sh.Epoch}, Position: state.Position{Sequence: strings.Repeat("1", position)}}
			if errs := w.Checkpoint(t.Context(), []state.Checkpoint{c}); errs != nil {
				t.Fatal(errs)
			}
		}
	})
}
