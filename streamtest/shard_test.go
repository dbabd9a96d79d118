package streamtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

func TestSplitAndRoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t)
		table := p.s.CreateTable("orders", TableOptions{})
		root := table.Shards()[0].ID
		atRoot := p.must(p.iterator(table, root, horizon))
		put(table, "abc")
		time.Sleep(4 * time.Hour)
		left, right := table.Split(root)
		put(table, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
		child := table.Roll(left)
		put(table, "0123456789")

		want(t, "a closed shard's records come with its end", p.letters(p.must(p.iterator(table, root, horizon))), "abc.")
		want(t, "as of an iterator that was there before", p.letters(p.must(atRoot, nil)), "ExpiredIteratorException")
		want(t, "children of the root", func() []string { s, _ := p.shards(table.StreamARN(), root); return sorted(s) }(),
			sorted([]string{left + "<" + root, right + "<" + root + "+"}))
		all, _ := p.shards(table.StreamARN())
		want(t, "all shards", sorted(all), sorted([]string{root + "<", left + "<" + root, right + "<" + root + "+", child + "<" + left + "+"}))
		leftHas, rightHas := p.letters(p.must(p.iterator(table, left, horizon))), p.letters(p.must(p.iterator(table, right, horizon)))
		if len(leftHas) < 4 || len(rightHas) < 8 {
			t.Errorf("a split leaves %q and %q", leftHas, rightHas)
		}

		for _, in := range table.Shards() {
			want(t, "created", in.Created.UnixMilli(), strings.TrimLeft(in.ID[8:28], "0"))
			want(t, "open", in.Open, in.ID == child || in.ID == right)
		}
	})
}

// An item's records are in one line of shards, each the parent of the next, and
// their numbers grow down that line.
func TestItemsStayInTheirLine(t *testing.T) {
	table := NewService(nil).CreateTable("orders", TableOptions{Shards: 3, SortKey: "sk"})
	parents := make(map[string]string)
	for i := range 400 {
		for _, in := range table.Shards() {
			parents[in.ID] = in.Parent
		}
		if open := table.stream.open; i%20 == 7 {
			table.Split(open[i%len(open)].id)
		} else if i%20 == 15 {
			table.Roll(open[i%len(open)].id)
		}
		table.Put(map[string]any{"pk": i % 37, "sk": fmt.Sprint(i % 3), "n": i})
	}
	below := func(id, ancestor string) bool {
		for id != "" && id != ancestor {
			id = parents[id]
		}
		return id != ""
	}
	last := make(map[string]Change)
	starts := make(map[string]sluice.Sequence)
	for _, sh := range table.stream.shards {
		starts[sh.id] = sh.start
		if sh.parent != "" && table.stream.byID[sh.parent].end.Compare(sh.start) >= 0 {
			t.Errorf("a shard starts at %s, its parent ends at %s", sh.start, table.stream.byID[sh.parent].end)
		}
	}
	moved := 0
	for _, c := range table.Changes() {
		pk, _ := c.Keys.Lookup("pk")
		before, ok := last[pk.Str()]
		last[pk.Str()] = c
		switch {
		case c.Sequence.Compare(starts[c.ShardID]) <= 0:
			t.Errorf("%s is in a shard that starts at %s", c.Sequence, starts[c.ShardID])
		case !ok:
		case before.Sequence.Compare(c.Sequence) >= 0:
			t.Errorf("%s: %s follows %s", pk.Str(), c.Sequence, before.Sequence)
		case !below(c.ShardID, before.ShardID):
			t.Errorf("%s went from shard %s to %s, which does not descend from it", pk.Str(), before.ShardID, c.ShardID)
		case c.ShardID != before.ShardID:
			moved++
		}
	}
	if moved < 50 {
		t.Errorf("%d moves of an item to another shard", moved)
	}
}

// Sequence numbers grow in the whole stream, and in width, so that neither
// strings nor int64 can hold their order.
func TestSequenceNumbers(t *testing.T) {
	table := NewService(nil).CreateTable("orders", TableOptions{})
	var seqs []sluice.Sequence
	for i := range 600 {
		if i%100 == 50 {
			table.Split(table.Shards()[i/100].ID)
		}
		seqs = append(seqs, table.Put(map[string]any{"pk": i}))
	}
	widths := make(map[int]bool)
	for i, s := range seqs {
		widths[len(s)] = true
		if i > 0 && seqs[i-1].Compare(s) >= 0 {
			t.Fatalf("%s follows %s", s, seqs[i-1])
		}
	}
	if !widths[27] || !widths[28] {
		t.Errorf("widths %v, want 27 and 28", widths)
	}
	asText := slices.Clone(seqs)
	slices.Sort(asText)
	if slices.Equal(asText, seqs) {
		t.Error("numbers and strings have the same order")
	}
}

// A stream of more than 100 shards is listed in pages, in an order that is
// neither lexical nor of lineage.
func TestListingInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t)
		table := p.s.CreateTable("orders", TableOptions{Shards: 120})
		for _, s := range table.Shards() {
			time.Sleep(time.Millisecond)
			table.Roll(s.ID)
		}
		got, pages := p.shards(table.StreamARN())
		want(t, "pages", pages, 3)
		seen := make(map[string]bool)
		early := 0 // children before their parents
		for _, s := range got {
			id, parent, _ := strings.Cut(strings.TrimSuffix(s, "+"), "<")
			if seen[id] {
				t.Errorf("%s is listed twice", id)
			}
			seen[id] = true
			if parent != "" && !seen[parent] {
				early++
			}
		}
		want(t, "shards", len(seen), 240)
		if early < 20 || early > 100 {
			t.Errorf("%d of 120 children come before their parents", early)
		}
		if slices.IsSorted(got) {
			t.Error("the listing is sorted")
		}
	})
}

// Every item has one open shard, however shards were split.
func TestHashRangesCoverEverything(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 64} {
		table := NewService(nil).CreateTable("orders", TableOptions{Shards: n})
		for range 50 {
			open := table.stream.open
			for i, sh := range open {
				if i == 0 && sh.low != 0 || i > 0 && sh.low != open[i-1].high+1 || i == len(open)-1 && sh.high != ^uint64(0) {
					t.Fatalf("%d shards: hole before %x", n, sh.low)
				}
			}
			table.Split(open[len(open)*2/3].id)
			table.Roll(table.stream.open[0].id)
		}
	}
}

func TestHide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t)
		table := p.s.CreateTable("orders", TableOptions{})
		root := table.Shards()[0].ID
		child := table.Roll(root)
		table.Hide(child, 2)
		for i, n := range []int{1, 1, 2, 2} {
			got, _ := p.shards(table.StreamARN())
			want(t, fmt.Sprint("shards in listing ", i), len(got), n)
		}
		table.Hide(root, 1) // a parent that comes after its child
		got, _ := p.shards(table.StreamARN())
		want(t, "shards", got, "["+child+"<"+root+"+]")
		want(t, "a hidden shard can be read", p.letters(p.must(p.iterator(table, root, horizon))), ".")
	})
}
