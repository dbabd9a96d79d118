package dynamostate

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/job"
	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

// listed counts the rows that lists read. Partitions are listed at the same time.
type listed struct {
	rows.Table
	rows atomic.Int64
}

func (l *listed) List(ctx context.Context, partition, after string, limit int) iter.Seq2[rows.Row, error] {
	all := slices.Collect(func(yield func(rows.Row) bool) {
		for row, err := range l.Table.List(ctx, partition, after, limit) {
			if err != nil || !yield(row) {
				return
			}
		}
	})
	l.rows.Add(int64(len(all)))
	return func(yield func(rows.Row, error) bool) {
		for _, row := range all {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// Shards reads the rows of finished shards once an hour. It lists the same as another
// Store, which reads all.
func TestShardsReadsFinishedOnesSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listed{Table: new(memory)}
		s, w, mine := over(l), over(l.Table), make(map[string]state.Lease)
		if _, err := s.Start(t.Context(), stream, state.Start{Position: "TRIM_HORIZON"}); err != nil {
			t.Fatal(err)
		}
		list := func(when string, want int64) {
			t.Helper()
			l.rows.Store(0)
			got, err := s.Shards(t.Context(), stream)
			if err != nil {
				t.Fatal(err)
			}
			if read := l.rows.Load(); read != want {
				t.Errorf("%s: %d rows are read, want %d", when, read, want)
			}
			all, err := over(l.Table).Shards(t.Context(), stream)
			if err != nil || !slices.Equal(got, all) {
				t.Errorf("%s: listed %v, want %v, %v", when, got, all, err)
			}
		}
		id := func(i int) string { return fmt.Sprintf("shard-%04d", i) }
		claim := func(id string) {
			t.Helper()
			sh, err := w.Claim(t.Context(), stream, id, "", "w")
			if err != nil {
				t.Fatal(err)
			}
			mine[id] = state.Lease{Stream: stream, ShardID: id, Owner: "w", Epoch: sh.Epoch}
		}
		end := func(i int) {
			t.Helper()
			l := mine[id(i)]
			if errs := w.Checkpoint(t.Context(), []state.Checkpoint{{Lease: l, Position: state.Position{Sequence: "1", Finished: true}}}); errs != nil {
				t.Fatal(errs)
			}
			if err := w.Release(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 400 {
			claim(id(i))
		}
		for i := range 300 {
			end(i)
		}
		list("at first", 400)
		list("again", 100)
		for i := 300; i < 350; i++ {
			end(i)
		}
		claim(id(400))
		list("after ends", 101)
		list("again", 51)
		if err := s.Forget(t.Context(), stream, id(0), id(1), id(349)); err != nil {
			t.Fatal(err)
		}
		list("after a Forget", 51)
		if err := w.Forget(t.Context(), stream, id(2)); err != nil {
			t.Fatal(err)
		}
		claim("shard-0000-found-late")
		time.Sleep(listAll)
		list("an hour later", 398)
		if err := l.Table.Delete(t.Context(), get(t, l.Table, shardKey(stream, id(3)))); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Start(t.Context(), stream, state.Start{}); err != nil {
			t.Fatal(err)
		}
		list("after a Start", 397)
	})
}

func get(t *testing.T, table rows.Table, k rows.Key) rows.Row {
	t.Helper()
	row, err := table.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// A reset deletes shards that were stored since this Store read all rows, and the next
// Shards lists none of those that it deleted.
func TestResetListsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		s := over(table)
		finish := func(ids ...string) {
			t.Helper()
			if err := over(table).Finish(t.Context(), stream, ids...); err != nil {
				t.Fatal(err)
			}
		}
		count := func(when string, want int) {
			t.Helper()
			for _, st := range []*Store{s, over(table)} {
				if all, err := st.Shards(t.Context(), stream); err != nil || len(all) != want {
					t.Errorf("%s: %d shards, want %d: %v", when, len(all), want, err)
				}
			}
		}
		for i := range 50 {
			finish(fmt.Sprintf("shard-%d", i))
		}
		count("at first", 50)
		if err := s.ResetShards(t.Context(), stream, "shard-7"); err != nil {
			t.Fatal(err)
		}
		count("after the reset of a shard", 49)
		for i := range 50 {
			finish(fmt.Sprintf("earlier-%d", i))
		}
		if err := s.ResetStream(t.Context(), stream, state.Start{}); err != nil {
			t.Fatal(err)
		}
		count("after the reset of the stream", 0)
	})
}

// A job whose row sorts before finished jobs that were listed is listed, too.
func TestJobsBeforeFinishedOnesAreListed(t *testing.T) {
	ctx, table := t.Context(), new(memory)
	a, b := over(table), over(table)
	st := job.Stream("app")
	finish := func(s *Store, id string) {
		sh, err := s.Claim(ctx, st, id, "", "owner-a")
		if err != nil {
			t.Fatal(err)
		}
		l := state.Lease{Stream: st, ShardID: id, Owner: "owner-a", Epoch: sh.Epoch}
		if err := job.Checkpoint(ctx, s, l, state.Position{Finished: true}); err != nil {
			t.Fatal(err)
		}
		if err := s.Release(ctx, l); err != nil {
			t.Fatal(err)
		}
	}
	var old []string
	for i := range 64 {
		old = append(old, fmt.Sprintf("backfill//table/orders/g/%03d", i))
		finish(a, old[i])
	}
	if all, err := b.Shards(ctx, st); err != nil || len(all) != 64 {
		t.Fatal(len(all), err)
	}
	if err := a.Forget(ctx, st, old...); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		finish(a, fmt.Sprintf("backfill//table/customers/g/%03d", i))
	}
	all, err := b.Shards(ctx, st)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, sh := range all {
		if strings.Contains(sh.ID, "customers") && sh.Position.Finished {
			n++
		}
	}
	if n != 8 {
		t.Errorf("the second worker sees %d of 8 finished segments of the next table", n)
	}
}
