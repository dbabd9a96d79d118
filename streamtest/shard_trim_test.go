package streamtest

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestTrimByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t)
		table := p.s.CreateTable("orders", TableOptions{})
		shard := table.Shards()[0].ID
		first := put(table, "ab")
		time.Sleep(12 * time.Hour)
		second := put(table, "cd")
		time.Sleep(12*time.Hour - time.Nanosecond)
		want(t, "before", p.letters(p.must(p.iterator(table, shard, horizon))), "abcd")
		reads := p.must(p.iterator(table, shard, horizon))
		at := p.must(p.iterator(table, shard, after, first))

		time.Sleep(time.Nanosecond)
		want(t, "from the horizon", p.letters(p.must(p.iterator(table, shard, horizon))), "cd")
		want(t, "an iterator that points before it", p.letters(reads), "TrimmedDataAccessException")
		want(t, "an iterator that points behind it", p.letters(at), "cd")
		_, err := p.iterator(table, shard, after, first)
		wantCode(t, "AFTER a trimmed number", err, "TrimmedDataAccessException")
		want(t, "AFTER a number that is there", p.letters(p.must(p.iterator(table, shard, after, second))), "")
		var trimmed []bool
		for _, c := range table.Changes() {
			trimmed = append(trimmed, c.Trimmed)
		}
		want(t, "trimmed", trimmed, "[true true false false]")
		want(t, "first", table.Shards()[0].First, table.Changes()[2].Sequence)
	})
}

// A closed shard is forgotten when none of its records is left. Its child still
// names it.
func TestClosedShardsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t)
		table := p.s.CreateTable("orders", TableOptions{})
		root := table.Shards()[0].ID
		seq := put(table, "a")
		time.Sleep(time.Hour)
		empty := table.Roll(root)
		time.Sleep(time.Hour)
		child := table.Roll(empty)
		at := p.must(p.iterator(table, root, horizon))

		time.Sleep(22 * time.Hour)
		got, _ := p.shards(table.StreamARN())
		want(t, "shards after the only record's 24 h", sorted(got), sorted([]string{empty + "<" + root, child + "<" + empty + "+"}))
		_, err := p.iterator(table, root, after, seq)
		wantCode(t, "an iterator of it", err, "ResourceNotFoundException")
		_, err = p.page(at, 0)
		wantCode(t, "its records", err, "ResourceNotFoundException")
		want(t, "its children", func() []string { s, _ := p.shards(table.StreamARN(), root); return s }(), "["+empty+"<"+root+"]")

		time.Sleep(2 * time.Hour)
		want(t, "shards after 24 h without a record", len(table.Shards()), 1)
		want(t, "the open one", table.Shards()[0].Parent, empty)
	})
}

// A shard that closes when its records are older than the retention has still
// to be there for its readers: that it has ended is what they must learn.
func TestIdleShardCloses(t *testing.T) {
	for _, how := range []string{"age", "Trim"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProbe(t)
				table := p.s.CreateTable("orders", TableOptions{})
				root := table.Shards()[0].ID
				put(table, "a")
				if how == "Trim" {
					table.Trim(root, 1)
				} else {
					time.Sleep(25 * time.Hour)
				}
				end := p.must(p.iterator(table, root, latest))
				child := table.Roll(root)
				want(t, "a reader at its end", p.letters(end), ".")
				time.Sleep(24*time.Hour - time.Nanosecond)
				want(t, "shards for a day", len(table.Shards()), 2)
				time.Sleep(time.Nanosecond)
				want(t, "shards after it", len(table.Shards()), 1)

				table.DisableStream()
				want(t, "the last shard of a stream that is disabled", p.letters(p.must(p.iterator(table, child, horizon))), ".")
				table.Trim(child, -1)
				want(t, "shards", len(table.Shards()), 0)
			})
		})
	}
}

func TestTrimByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t)
		table := p.s.CreateTable("orders", TableOptions{})
		root := table.Shards()[0].ID
		first := put(table, "a")
		put(table, "b")
		third := put(table, "c")
		between := p.must(p.iterator(table, root, after, first))
		table.Trim(root, 1)
		want(t, "one less", p.letters(p.must(p.iterator(table, root, horizon))), "bc")
		want(t, "what stood behind it", p.letters(between), "bc")
		table.TrimBefore(third)
		want(t, "two less", p.letters(p.must(p.iterator(table, root, horizon))), "c")
		want(t, "what stood before it", p.letters(between), "TrimmedDataAccessException")
		empty := table.Roll(root)
		table.Roll(empty)
		table.Trim(root, 1)
		want(t, "a closed shard without records", len(table.Shards()), 2)
		table.Trim(empty, -1)
		want(t, "a closed shard that never had one", len(table.Shards()), 1)
		open := table.Shards()[0].ID
		table.Trim(open, -1)
		put(table, "d")
		table.Trim(open, -1)
		want(t, "an open shard stays", p.letters(p.must(p.iterator(table, open, horizon))), "")
	})
}
