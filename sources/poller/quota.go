package poller

import (
	"context"
	"sync"
)

// quotas limit reading: memory for the whole process, calls for each table.
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

// quota is what one reader must obtain before a call. One goroutine uses it,
// except for free.
type quota struct {
	calls    *calls
	turn     *turn
	memory   *account
	reserved int64 // for the next page
}

// admit waits until the next call may start with room for its page, or returns
// ctx's error. It calls waits when it starts and ends waiting for room.
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

// admitAhead is admit for a call made ahead, without waiting: ok says whether it
// may start now. The caller must adopt or free the reservation.
func (q *quota) admitAhead() (reserved int64, ok bool) {
	if reserved, ok = q.memory.try(); ok && !q.calls.try() {
		q.memory.free(reserved)
		return 0, false
	}
	return reserved, ok
}

// adopt uses a reservation made ahead for the next page.
func (q *quota) adopt(reserved int64) { q.reserved = reserved }

// got replaces the reservation by the real size of a page.
func (q *quota) got(bytes int64) {
	q.memory.settle(q.reserved, bytes)
	q.reserved = 0
}

// dismiss frees the reservation of a page that did not come.
func (q *quota) dismiss() {
	if q.reserved > 0 {
		q.memory.free(q.reserved)
		q.reserved = 0
	}
}

// free frees bytes of pages.
func (q *quota) free(bytes int64) { q.memory.free(bytes) }
