package deadletter

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// handledTimeout bounds the requests of one Handled.
const handledTimeout = 10 * time.Second

// Handled notes that a route has succeeded with rec or skipped it. It deletes the
// letters of rec for this route and for all routes. So no redrive runs a change
// that was handled after its parking. That happens when a process ends between
// Park and storing the position, and reads the record again. Call Handled for each
// record before its position is stored. The first call lists the letters, later
// ones answer from memory unless rec may have a letter. A call takes at most 10 s. A
// letter that another process stores after that list stays.
func (b *Box) Handled(ctx context.Context, rec *sluice.Record, route string) error {
	if b.parked.covers(rec) && !b.mayHave(rec) { // without ctx, because every record takes this path
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, handledTimeout)
	defer cancel()
	if err := b.parked.list(ctx, rec, b.ids); err != nil || !b.mayHave(rec) {
		return err
	}
	for _, route := range []string{route, ""} {
		id := b.ID(rec, route)
		_, there, err := b.letters.GetLetter(ctx, b.app, id)
		if err == nil && there {
			err = b.Delete(ctx, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Adopt notes that another process may have parked records of a shard that this one now
// reads. The next Handled of such a record lists the letters again. One list serves all
// shards that were adopted before it began.
func (b *Box) Adopt(shardID string) { b.parked.adopt(shardID) }

// mayHave reports whether rec may have a letter. In a store of several processes a
// queue's message always may: any process can have received it before.
func (b *Box) mayHave(rec *sluice.Record) bool {
	return b.parked.has(string(rec.Sequence)) || b.shared && rec.EventName == sluice.Delivery
}

// ids lists the ids of letters greater than after.
func (b *Box) ids(ctx context.Context, after string) ([]state.Letter, error) {
	list, limit := b.heads(1)
	return list(ctx, b.app, after, limit)
}

// parked has the sequence numbers of records that may have a letter, without leading
// zeros. Records without a sequence number share one entry.
//
// Calls of adopt are numbered from 1. A list of all letters covers the adoptions before
// it.
type parked struct {
	adoptions atomic.Int64
	covered   atomic.Int64 // 1 + adoptions at the beginning of the last complete list; 0: none is complete

	mu        sync.RWMutex
	sequences map[string]struct{}
	adopted   map[string]int64 // last adoption of each shard, until it is covered

	listing chan struct{} // full while a call lists
	after   string        // last id of an unfinished list; of the call that lists
	of      int64         // adoptions at the beginning of that list
}

func (p *parked) adopt(shardID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.adopted == nil {
		p.adopted = make(map[string]int64)
	}
	p.adopted[shardID] = p.adoptions.Add(1)
}

// covers reports whether a list has seen all letters that another process can have
// stored of rec before this one got its shard.
func (p *parked) covers(rec *sluice.Record) bool {
	covered := p.covered.Load()
	if covered > p.adoptions.Load() {
		return true
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	return covered > p.adopted[rec.ShardID]
}

func (p *parked) has(sequence string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	_, ok := p.sequences[strings.TrimLeft(sequence, "0")]
	return ok
}

// add notes a letter. Its id begins with the record's sequence number.
func (p *parked) add(id string) {
	fence, _, _ := strings.Cut(id, "-")
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sequences == nil {
		p.sequences = make(map[string]struct{})
	}
	p.sequences[strings.Clone(strings.TrimLeft(fence, "0"))] = struct{}{}
}

// list adds all letters, unless rec is covered. After an error the next call continues.
func (p *parked) list(ctx context.Context, rec *sluice.Record, next func(ctx context.Context, after string) ([]state.Letter, error)) error {
	select {
	case p.listing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.listing }()
	for !p.covers(rec) {
		if p.after == "" {
			p.of = p.adoptions.Load()
		}
		letters, err := next(ctx, p.after)
		if err != nil {
			return err
		}
		for _, l := range letters {
			p.add(l.ID)
			p.after = l.ID
		}
		if len(letters) == 0 {
			p.complete()
		}
	}
	return nil
}

// complete ends a list.
func (p *parked) complete() {
	p.after = ""
	p.covered.Store(p.of + 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.adopted, func(_ string, n int64) bool { return n <= p.of })
}
