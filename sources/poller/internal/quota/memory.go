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

const firstReserve = 4 << 20 // for a page, until a larger one was seen

// DefaultMemory is how much memory the pages of so many tables are given when
// nobody says it: a quarter of GOMEMLIMIT if that is set, else 256 MiB.
func DefaultMemory(tables int) int64 {
	want := int64(256 << 20)
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 { // GOMEMLIMIT
		want = limit / 4
	}
	return max(want, LeastMemory(tables))
}

// LeastMemory is the least of it.
func LeastMemory(tables int) int64 { return max(16<<20, int64(tables)*8<<20) }

// budget bounds what the pages of all shards take in memory. A shard reserves
// room before it asks for a page and waits for it, in turn.
//
// Records that stand still give nothing back, so some room is kept from those
// that have much: half of it is the tables', in equal parts, so that what stands
// still in one does not starve another; the other half is whose comes first. Of
// what a table may have, half is for shards that have no page yet, and no shard
// takes more than an eighth unless it is for its second page.
//
// With more shards standing still than there is room for pages the others of
// their table wait until one goes on.
type budget struct {
	limit int64
	part  int64 // of each table

	mu      sync.Mutex
	used    int64
	claimed int64 // of all tables, what they use or what is theirs, whichever is more
	tables  []*tableBudget
	turn    int // of the tables
}

// tableBudget is a table's part of the budget. It belongs to the budget's mu.
type tableBudget struct {
	budget  *budget
	used    int64
	reserve int64     // for a page
	waiting list.List // of accounts
}

// newBudget returns the budget for so many tables.
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

// account is a shard's part of the budget. It is used by one reader at a time;
// free may be called by anybody.
type account struct {
	table *tableBudget
	ready chan struct{} // has room for one

	// Of the budget's mu.
	used  int64
	want  int64         // while it waits
	place *list.Element // nil: it does not
}

func (t *tableBudget) account() *account {
	return &account{table: t, ready: make(chan struct{}, 1)}
}

// try takes room for a page, unless it or others have to wait for it. It
// returns how much.
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

// page is what is reserved for one. Two fit into the table's part.
func (a *account) page() int64 { return min(a.table.reserve, a.table.budget.part/2) }

// reserve takes room for a page, and waits for it until ctx ends. It returns
// how much.
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
	b.grant() // who waited behind it
	return 0, ctx.Err()
}

// settle changes what was reserved for a page to what it takes. A page that is
// larger than what was reserved is there all the same; more is reserved for the
// table's next ones.
func (a *account) settle(reserved, bytes int64) {
	b := a.table.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.give(a, reserved-bytes)
	a.table.reserve = max(a.table.reserve, bytes)
	b.grant()
}

// free gives back n bytes.
func (a *account) free(n int64) {
	b := a.table.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.give(a, n)
	b.grant()
}

// pinned returns what the shard has.
func (a *account) pinned() int64 {
	b := a.table.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	return a.used
}

// state returns what is taken, and how many shards wait.
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

// room returns what t may have, and what of that is not taken.
func (b *budget) room(t *tableBudget) (all, free int64) {
	all = b.limit - b.claimed + max(t.used, b.part)
	return all, all - t.used
}

// fits reports whether a may take n bytes for a page.
func (b *budget) fits(a *account, n int64) bool {
	all, free := b.room(a.table)
	if a.used < n/64 { // a few records that are held are no page
		return n <= free
	}
	return n <= free-all/2 && a.used+n <= max(all/8, 2*n)
}

// grant gives room to those that wait, the first first. Who has its part is
// passed over.
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
				break // for those behind it neither
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
