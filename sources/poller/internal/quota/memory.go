package quota

import (
	"container/list"
	"context"
	"math"
	"runtime/debug"
	"sync"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/sources/poller/internal/positions"
)

const firstReserve = 4 << 20 // reserved for a page, until a larger page was seen

// DefaultMemory is the default memory for the pages of a number of tables: a quarter
// of GOMEMLIMIT if that is set, else 256 MiB; at least LeastMemory.
func DefaultMemory(tables int) int64 {
	want := int64(256 << 20)
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 { // GOMEMLIMIT
		want = limit / 4
	}
	return max(want, LeastMemory(tables))
}

// LeastMemory is the least memory for the pages of a number of tables.
func LeastMemory(tables int) int64 { return max(16<<20, int64(tables)*8<<20) }

// budget bounds the memory of the pages of all shards. A shard reserves room
// before it asks for a page, and waits its turn when the memory is full.
//
// Held records free no memory, so large users leave room for others. Half of the
// budget is divided equally among the tables: held records of one table cannot
// starve another. The other half is first come, first served. Half of a table's
// room is for shards without a page. No shard takes more than an eighth, except
// for its second page.
//
// If more shards hold pages than fit, the other shards of their table wait until
// one of them continues.
type budget struct {
	limit int64
	part  int64 // share of each table

	mu      sync.Mutex
	used    int64
	claimed int64 // sum over all tables of the larger of use and share
	tables  []*tableBudget
	turn    int // index of the table whose turn it is
}

// tableBudget is a table's part of the budget. The budget's mu guards it.
type tableBudget struct {
	budget  *budget
	used    int64
	reserve int64     // for one page
	waiting list.List // of accounts
}

// newBudget returns the budget for a number of tables.
func newBudget(limit int64, tables int) *budget {
	part := limit / 2 / int64(tables)
	return &budget{limit: limit, part: part, claimed: part * int64(tables)}
}

func (b *budget) table() *tableBudget {
	t := &tableBudget{budget: b, reserve: firstReserve}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tables = append(b.tables, t)
	return t
}

// account is a shard's part of the budget. One reader at a time uses it; any
// goroutine may call free.
type account struct {
	table *tableBudget
	ready chan struct{} // has room for one

	// Guarded by the budget's mu.
	used  int64
	want  int64         // while the account waits
	place *list.Element // nil: it does not wait
}

func (t *tableBudget) account() *account {
	return &account{table: t, ready: make(chan struct{}, 1)}
}

// try reserves room for a page and returns its size. It fails if the account or
// another of the table must wait.
func (a *account) try() (n int64, ok bool) {
	b := a.table.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	n = a.page()
	if a.table.waiting.Len() > 0 || !b.fits(a, n) {
		return 0, false
	}
	b.take(a, n)
	return n, true
}

// page is the reservation for one page. Two fit into the table's share.
func (a *account) page() int64 { return min(a.table.reserve, a.table.budget.part/2) }

// reserve reserves room for a page and returns its size. It waits until ctx ends.
func (a *account) reserve(ctx context.Context) (n int64, err error) {
	b := a.table.budget
	b.mu.Lock()
	n = a.page()
	a.want, a.place = n, a.table.waiting.PushBack(a)
	b.grant()
	b.mu.Unlock()
	select {
	case <-a.ready:
		return n, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.place != nil {
		a.leave()
	} else {
		<-a.ready
		b.give(a, n)
	}
	b.grant() // accounts behind it may fit
	return 0, ctx.Err()
}

// settle corrects a reservation to the real size of the page. A larger page is
// accepted, and the table's next reservations grow.
func (a *account) settle(reserved, bytes int64) {
	b := a.table.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.give(a, reserved-bytes)
	a.table.reserve = max(a.table.reserve, bytes)
	b.grant()
}

// free frees n bytes.
func (a *account) free(n int64) {
	b := a.table.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.give(a, n)
	b.grant()
}

// pinned returns the memory of the shard.
func (a *account) pinned() int64 {
	b := a.table.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	return a.used
}

// state returns the memory in use, and the number of shards that wait.
func (b *budget) state() (used int64, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.tables {
		waiting += t.waiting.Len()
	}
	return b.used, waiting
}

func (b *budget) take(a *account, n int64) {
	t := a.table
	b.used += n
	a.used += n
	b.claimed -= max(t.used, b.part)
	t.used += n
	b.claimed += max(t.used, b.part)
}

func (b *budget) give(a *account, n int64) { b.take(a, -n) }

// room returns the bytes that t may use, and how many of these are free.
func (b *budget) room(t *tableBudget) (all, free int64) {
	all = b.limit - b.claimed + max(t.used, b.part)
	return all, all - t.used
}

// fits reports whether a may reserve n bytes for a page.
func (b *budget) fits(a *account, n int64) bool {
	all, free := b.room(a.table)
	if a.used < n/64 { // a few held records do not count as a page
		return n <= free
	}
	return n <= free-all/2 && a.used+n <= max(all/8, 2*n)
}

// grant gives room to waiting accounts in order. It skips accounts that have their
// share.
func (b *budget) grant() {
	for range b.tables {
		b.turn = (b.turn + 1) % len(b.tables)
		t := b.tables[b.turn]
		for e := t.waiting.Front(); e != nil; {
			a := e.Value.(*account)
			e = e.Next()
			if b.fits(a, a.want) {
				a.leave()
				b.take(a, a.want)
				a.ready <- struct{}{}
			} else if _, free := b.room(t); a.want > free {
				break // those behind it cannot fit either
			}
		}
	}
}

func (a *account) leave() {
	a.table.waiting.Remove(a.place)
	a.place = nil
}

// PageBytes is about what a page takes in memory: its text, the indexes of the
// images, the records with their strings and what the flow notes of each, and their
// positions.
func PageBytes(body []byte, recs []sluice.Record) int64 {
	const record = 640
	n := int64(len(body)) + int64(len(body))/4 + int64(len(recs))*record
	for i := range recs {
		n += positions.Bytes(&recs[i])
	}
	return n
}
