package poller

import (
	"context"
	"sync"
)

// quotas bound what reading takes: memory for the whole process, calls for
// each table.
type quotas struct {
	memory *budget
	rate   int // calls a second of one table

	mu     sync.Mutex
	tables map[string]*tableQuota
}

type tableQuota struct {
	calls  *calls
	memory *tableBudget
}

func newQuotas(o Options) *quotas {
	return &quotas{memory: newBudget(o.MaxMemory, len(o.Streams)), rate: o.CallsPerTable, tables: make(map[string]*tableQuota)}
}

// shard returns the quota of one shard's reader.
func (q *quotas) shard(table string) *quota {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.tables[table]
	if t == nil {
		t = &tableQuota{newCalls(q.rate), q.memory.table()}
		q.tables[table] = t
	}
	return &quota{calls: t.calls, turn: newTurn(), memory: t.memory.account()}
}

// quota is what one reader asks before it calls. It is used by one goroutine,
// but for free.
type quota struct {
	calls    *calls
	turn     *turn
	memory   *account
	reserved int64 // for the page that comes next
}

// admit returns when the next call may be made, with room for its page, or with
// ctx's error. waits is called when there is no room, and when there is again.
func (q *quota) admit(ctx context.Context, backlog bool, waits func(bool)) error {
	if err := q.calls.wait(ctx, q.turn, backlog); err != nil {
		return err
	}
	var ok bool
	if q.reserved, ok = q.memory.try(); ok {
		return nil
	}
	waits(true)
	defer waits(false)
	var err error
	if q.reserved, err = q.memory.reserve(ctx); err != nil {
		return err
	}
	return q.calls.wait(ctx, q.turn, backlog) // the other turn was long ago
}

// admitAhead is admit for the call after the next, which is not waited for: ok
// says whether it may be made now. What is reserved for its page is the
// caller's until it is adopted or freed.
func (q *quota) admitAhead() (reserved int64, ok bool) {
	if reserved, ok = q.memory.try(); ok && !q.calls.try() {
		q.memory.free(reserved)
		return 0, false
	}
	return reserved, ok
}

// adopt takes what was reserved ahead for the page that comes next now.
func (q *quota) adopt(reserved int64) { q.reserved = reserved }

// got notes that a page of bytes is there, in the place of what was reserved.
func (q *quota) got(bytes int64) {
	q.memory.settle(q.reserved, bytes)
	q.reserved = 0
}

// dismiss gives back what was reserved for a page that did not come.
func (q *quota) dismiss() {
	if q.reserved > 0 {
		q.memory.free(q.reserved)
		q.reserved = 0
	}
}

// free gives back bytes of pages.
func (q *quota) free(bytes int64) { q.memory.free(bytes) }
