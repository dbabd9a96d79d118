// Package quota limits readers: the memory for pages in the whole process, and the
// calls for each table. It is the only place that budgets the bytes of pages.
//
// # Who counts bytes
//
// This package counts each byte of a page once. A byte has one owner at a time, who
// frees it:
//
//   - Before a call, its reader has reserved room for a page (Admit, AdmitAhead).
//     Dismiss and Free free the room if no page came.
//   - When the page has come, Got replaces the reservation by PageBytes: about the
//     memory of the page, with its records and their positions.
//   - When the reader hands the page over, positions.Map owns the bytes of the
//     positions. It frees them as the watermark passes the records.
//   - The flow owns the other bytes (flow.Page.Bytes). It frees them when all
//     records are settled, or all but a few: it copies these.
//   - The reader, or the worker that took it, frees a page that it does not hand over.
//
// The flow counts the same records for another purpose. flow.Options.WindowBytes and
// HeldBytes limit how far one shard runs ahead of its first unsettled record. They
// count the size of each record, not the memory of its page: with one unsettled
// record, the quota may still count the whole page. Sources without this quota have
// the flow's window, too. So the two remain separate.
package quota

import (
	"context"
	"sync"
)

// Pool is shared by all readers of a process. It is safe for concurrent use.
type Pool struct {
	memory *budget
	rate   int // calls a second of one table

	mu     sync.Mutex
	tables map[string]*table
}

type table struct {
	calls  *calls
	memory *tableBudget
}

// NewPool returns a Pool of memory bytes for a number of tables. The shards of one
// table make at most rate calls a second.
func NewPool(memory int64, tables, rate int) *Pool {
	return &Pool{memory: newBudget(memory, tables), rate: rate, tables: make(map[string]*table)}
}

// Share returns the Share of one shard's reader. name is that of the table.
func (p *Pool) Share(name string) *Share {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tables[name]
	if t == nil {
		t = &table{newCalls(p.rate), p.memory.table()}
		p.tables[name] = t
	}
	return &Share{calls: t.calls, turn: newTurn(), memory: t.memory.account()}
}

// Memory returns the used and reserved bytes, and the number of waiting shards.
func (p *Pool) Memory() (used int64, waiting int) { return p.memory.state() }

// Share is a reader's part of a Pool. One goroutine uses it; Free and Pinned are safe
// for concurrent use.
type Share struct {
	calls    *calls
	turn     *turn
	memory   *account
	reserved int64 // for the next page
}

// Admit waits until the reader may call and has room for the page, or returns ctx's
// error. It calls waits(true) if it must wait for room, and waits(false) at the end.
func (s *Share) Admit(ctx context.Context, backlog bool, waits func(bool)) error {
	if err := s.calls.wait(ctx, s.turn, backlog); err != nil {
		return err
	}
	var ok bool
	if s.reserved, ok = s.memory.try(); ok {
		return nil
	}
	waits(true)
	defer waits(false)
	var err error
	if s.reserved, err = s.memory.reserve(ctx); err != nil {
		return err
	}
	return s.calls.wait(ctx, s.turn, backlog) // the first turn was long ago
}

// AdmitAhead is Admit for the call after the next one, without waiting: ok reports
// whether the reader may call now. The caller adopts or frees the reserved bytes.
func (s *Share) AdmitAhead() (reserved int64, ok bool) {
	if reserved, ok = s.memory.try(); ok && !s.calls.try() {
		s.memory.free(reserved)
		return 0, false
	}
	return reserved, ok
}

// Adopt uses bytes from AdmitAhead for the next page.
func (s *Share) Adopt(reserved int64) { s.reserved = reserved }

// Got replaces the reservation by the bytes of the page that came.
func (s *Share) Got(bytes int64) {
	s.memory.settle(s.reserved, bytes)
	s.reserved = 0
}

// Dismiss frees the reservation when no page came.
func (s *Share) Dismiss() {
	if s.reserved > 0 {
		s.memory.free(s.reserved)
		s.reserved = 0
	}
}

// Free frees bytes of pages.
func (s *Share) Free(bytes int64) { s.memory.free(bytes) }

// Pinned returns the bytes that the shard uses.
func (s *Share) Pinned() int64 { return s.memory.pinned() }
