package quota

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/benchdata"
)

const (
	mib   = 1 << 20
	least = 16 * mib
)

// fill has a reserve pages of bytes until it would have to wait.
func fill(a *account, bytes int64) (pages int) {
	for ; ; pages++ {
		n, ok := a.try()
		if !ok {
			return pages
		}
		a.settle(n, bytes)
	}
}

// Who stands still keeps no more than it leaves to others: a shard of its
// table's part, a table of the whole.
func TestBudgetIsShared(t *testing.T) {
	const limit = 256 * mib
	for _, c := range []struct {
		name           string
		tables, shards int   // shards of each
		least          int64 // memory left then
	}{
		{"one shard", 1, 1, 224 * mib},
		{"a few shards", 1, 20, 110 * mib},
		{"many shards", 1, 100, 30 * mib},
		{"more shards than there is room for", 1, 1000, 0},
		{"a table with many shards", 2, 1000, 64 * mib},
		{"all tables but one", 7, 1000, 18 * mib},
	} {
		b := newBudget(limit, c.tables)
		for range max(1, c.tables-1) {
			table := b.table()
			for i := range c.shards {
				pages := fill(table.account(), mib)
				if pages == 0 && (c.shards <= 100 || i < 8) {
					t.Errorf("%s: shard %d has no page", c.name, i)
				}
				if c.shards == 1 && pages < 20 {
					t.Errorf("%s: it has %d pages", c.name, pages)
				}
			}
		}
		used, _ := b.state()
		if used > limit || limit-used < c.least {
			t.Errorf("%s: %d MiB of %d are used, want %d left", c.name, used/mib, limit/mib, c.least/mib)
		}
		if fill(b.table().account(), mib) == 0 && c.tables > 1 {
			t.Errorf("%s: another table has no page", c.name)
		}
	}
}

// One page always fits, even if it is larger than the whole budget.
func TestOnePageAlwaysFits(t *testing.T) {
	b := newBudget(least, 3)
	a, other := b.table().account(), b.table().account()
	for range 3 {
		n, ok := a.try()
		if !ok || n > least/12 {
			t.Fatalf("reserved %d, %v", n, ok)
		}
		a.settle(n, 2*least)
		if _, ok := other.try(); ok {
			t.Error("there is room beside a page of twice the limit")
		}
		a.free(2 * least)
	}
	if n, ok := a.try(); !ok || n != least/12 {
		t.Errorf("%d, %v are reserved after pages of twice the limit, want half of a table's part", n, ok)
	}
}

// After a page larger than its reservation, the next reservation is as large.
func TestReserveFollowsThePages(t *testing.T) {
	b := newBudget(256*mib, 1)
	table := b.table()
	for _, c := range []struct{ page, want int64 }{{0, 4 * mib}, {mib, 4 * mib}, {6 * mib, 4 * mib}, {mib, 6 * mib}, {mib, 6 * mib}} {
		a := table.account()
		n, ok := a.try()
		if !ok || n != c.want {
			t.Errorf("reserved %d, want %d", n, c.want)
		}
		a.settle(n, c.page)
		a.free(c.page)
	}
}

// A reader that ends at the moment at which it is given room takes none of it
// with it.
func TestRoomOfAReaderThatEndsIsGivenBack(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := newBudget(least, 1)
	a := b.table().account()
	ended := 0
	for range 100 { // which of the two it learns of first is a matter of chance
		n, err := a.reserve(ctx)
		if err == nil {
			a.free(n)
		} else {
			ended++
		}
		if used, _ := b.state(); used != 0 || a.pinned() != 0 || len(a.ready) != 0 {
			t.Fatalf("used %d, %d of it by the reader, and %d grants are left", used, a.pinned(), len(a.ready))
		}
	}
	if ended == 0 {
		t.Error("the reader never ended")
	}
}

// Those that wait are served in turn, but who has more than its part is passed
// over, and who gives up is no obstacle.
func TestBudgetIsGivenInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(least, 1)
		table := b.table()
		hog := table.account()
		b.take(hog, 12*mib) // more than its part
		var mu sync.Mutex
		got := ""
		want := func(when, names string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if got != names {
				t.Errorf("%s: %s have room, want %s", when, got, names)
			}
		}
		wait := func(ctx context.Context, a *account, name string) {
			synctest.Wait()
			go func() {
				_, err := a.reserve(ctx)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					got += name
				}
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		first, second, third, quitter := table.account(), table.account(), table.account(), table.account()
		wait(t.Context(), hog, "H")
		wait(t.Context(), first, "1")
		wait(ctx, quitter, "Q")
		wait(t.Context(), second, "2")
		wait(t.Context(), third, "3")
		want("at first", "1")
		cancel()
		synctest.Wait()
		first.settle(4*mib, mib) // not enough for another
		want("with less than a page free", "1")
		hog.free(4 * mib)
		synctest.Wait()
		want("with a page free", "12")
		hog.free(4 * mib)
		synctest.Wait()
		want("with one more", "123")
		first.free(mib)
		second.free(4 * mib)
		synctest.Wait()
		want("with half of it free", "123")
		third.free(4 * mib)
		synctest.Wait()
		want("with enough for a shard that has its part", "123H")
		hog.free(8 * mib)
		if used, waiting := b.state(); used != 0 || waiting != 0 {
			t.Errorf("%d bytes are used, %d wait", used, waiting)
		}
	})
}

// Whatever readers do, the limit holds, everybody gets pages, and nothing is
// left over.
func TestBudgetHolds(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			limit := int64(16+rng.IntN(64)) * mib
			tables := 1 + rng.IntN(4)
			b := newBudget(limit, tables)
			var all []*account
			var readers sync.WaitGroup
			for range tables {
				table := b.table()
				for range 1 + rng.IntN(30) {
					a := table.account()
					all = append(all, a)
					rng := rand.New(rand.NewPCG(rng.Uint64(), 4))
					readers.Go(func() {
						var later sync.WaitGroup
						defer later.Wait()
						for got := 0; got < 20; {
							ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(100_000))*time.Millisecond)
							n, err := a.reserve(ctx)
							cancel()
							if err != nil {
								continue
							}
							got++
							time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond) // the call
							page := rng.Int64N(n)
							a.settle(n, page)
							if used, _ := b.state(); used > limit {
								t.Errorf("seed %d: %d of %d are used", seed, used, limit)
							}
							settled := time.Duration(rng.IntN(1000)) * time.Millisecond
							later.Go(func() {
								time.Sleep(settled)
								a.free(page / 2)
								time.Sleep(settled)
								a.free(page - page/2)
							})
							if rng.IntN(4) > 0 {
								later.Wait()
							}
						}
					})
				}
			}
			readers.Wait()
			used, waiting := b.state()
			for _, a := range all {
				if used != 0 || waiting != 0 || a.pinned() != 0 || a.table.used != 0 {
					t.Fatalf("seed %d: %d bytes are left, %d of them a shard's, %d a table's; %d wait", seed, used, a.pinned(), a.table.used, waiting)
				}
			}
		})
	}
}

// What a page is taken for is about what it takes.
func TestPageBytes(t *testing.T) {
	for name, c := range map[string]struct {
		kind    benchdata.Kind
		records int
	}{
		"25 attributes, both images": {benchdata.Modify, 600},
		"keys only":                  {benchdata.KeysOnly, 1000},
		"large items":                {benchdata.Large, 20},
	} {
		body := []byte(`{"Records":[`)
		for i := range c.records {
			body = append(append(body, c.kind(i)...), ',')
		}
		body = append(body[:len(body)-1], `]}`...)
		const pages = 16
		var got [pages]sluice.Page
		before := heap()
		for i := range got {
			var err error
			if got[i], err = sluice.DecodeGetRecords(append([]byte{}, body...), sluice.Source{}); err != nil {
				t.Fatal(err)
			}
		}
		real := float64(heap()-before) / pages
		counted := float64(PageBytes(body, got[0].Records))
		if counted < real || counted > 1.5*real {
			t.Errorf("%s: a page of %d bytes takes %.0f in memory and is taken for %.0f", name, len(body), real, counted)
		}
		runtime.KeepAlive(&got)
	}
}

// heap returns the bytes that are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools kept for one more
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
