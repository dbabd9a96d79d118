// Package quota bounds what reading takes: the memory of pages for the whole
// process, and the calls for each table. It is the one place where the bytes of
// pages are budgeted.
//
// # Who counts bytes
//
// A byte of a page is counted once here. It has one owner at a time, who gives
// it back:
//
//   - Before a call, its reader has reserved room for a page (Admit, AdmitAhead).
//     Dismiss and Free give that back when no page came.
//   - When the page is there, Got changes that to PageBytes: about what the page
//     takes in memory, its records and their positions included.
//   - When the page is handed over, the bytes of its positions pass to
//     positions.Map. It gives them back as the watermark passes the records.
//   - The rest is the Bytes of a flow.Page. The flow gives them back when all its
//     records are settled, or all but a few, of which it keeps copies.
//   - A page that is never handed over is given back by its reader, or by the
//     worker that took it.
//
// The flow weighs the same records a second time, and means something else.
// flow.Options.WindowBytes and HeldBytes bound how far one shard runs ahead of
// its first unsettled record. They count the weight of each record, not the
// memory of its page: when one record is left, the quota may still count its
// page, and the window counts one record. A flow has its window in sources
// without this quota, too. So the two stay apart.
package quota

import (
	"context"
	"sync"
)

// Pool is what all readers of a process share. It is safe for concurrent use.
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

// NewPool returns a pool of that many bytes for so many tables, the shards of
// each of which make rate calls a second at most.
func NewPool(memory int64, tables, rate int) *Pool {
	return &Pool{memory: newBudget(memory, tables), rate: rate, tables: make(map[string]*table)}
}

// Share returns what one shard's reader has of it.
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

// Memory returns the bytes that are taken or reserved, and how many shards wait
// for room.
func (p *Pool) Memory() (used int64, waiting int) { return p.memory.state() }

// Share is what one reader asks before it calls. It is used by one goroutine,
// but for Free and Pinned.
type Share struct {
	calls    *calls
	turn     *turn
	memory   *account
	reserved int64 // for the page that comes next
}

// Admit returns when the next call may be made, with room for its page, or with
// ctx's error. waits is called when there is no room, and when there is again.
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
	return s.calls.wait(ctx, s.turn, backlog) // the other turn was long ago
}

// AdmitAhead is Admit for the call after the next, which is not waited for: ok
// says whether it may be made now. What is reserved for its page is the
// caller's until it is adopted or freed.
func (s *Share) AdmitAhead() (reserved int64, ok bool) {
	if reserved, ok = s.memory.try(); ok && !s.calls.try() {
		s.memory.free(reserved)
		return 0, false
	}
	return reserved, ok
}

// Adopt takes what was reserved ahead for the page that comes next now.
func (s *Share) Adopt(reserved int64) { s.reserved = reserved }

// Got notes that a page of bytes is there, in the place of what was reserved.
func (s *Share) Got(bytes int64) {
	s.memory.settle(s.reserved, bytes)
	s.reserved = 0
}

// Dismiss gives back what was reserved for a page that did not come.
func (s *Share) Dismiss() {
	if s.reserved > 0 {
		s.memory.free(s.reserved)
		s.reserved = 0
	}
}

// Free gives back bytes of pages.
func (s *Share) Free(bytes int64) { s.memory.free(bytes) }

// Pinned returns the bytes that the shard has.
func (s *Share) Pinned() int64 { return s.memory.pinned() }
