package poller

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/state"
)

// holding is a shard that this poller owns.
type holding struct {
	lease    state.Lease
	position func() state.Position // what may be stored now
	observe  func()                // called each round, never after drop
	lost     func()                // the lease is another's; called once

	// Under the checkpointer's lock.
	stored  state.Position
	agreed  time.Time // when what could be stored was last seen to be
	waiters []chan error
}

// checkpointer stores the positions of all shards that are held, in one call.
type checkpointer struct {
	store *store
	every time.Duration
	done  func(shards int, took time.Duration, err error)

	mu   sync.Mutex
	held map[*holding]struct{}
	kick chan struct{} // has room for one
}

func newCheckpointer(o Options, s *store, done func(int, time.Duration, error)) *checkpointer {
	return &checkpointer{store: s, every: o.CheckpointEvery, done: done,
		held: make(map[*holding]struct{}), kick: make(chan struct{}, 1)}
}

// run stores positions until ctx ends. A call under way is not cut off by that,
// but by the end of writes.
func (c *checkpointer) run(ctx, writes context.Context) {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.kick:
		case <-ctx.Done():
			return
		}
		c.round(writes)
	}
}

func (c *checkpointer) hold(h *holding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.agreed = time.Now()
	c.held[h] = struct{}{}
}

func (c *checkpointer) drop(h *holding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, h)
}

// check drops the holdings that the store shows under a later epoch. It finds
// a lost lease whose position does not move; every other is found by storing.
func (c *checkpointer) check(stream state.Stream, stored []state.Shard) {
	epochs := make(map[string]uint64, len(stored))
	for _, sh := range stored {
		epochs[sh.ID] = sh.Epoch
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for h := range c.held {
		if h.lease.Stream == stream && epochs[h.lease.ShardID] > h.lease.Epoch {
			delete(c.held, h)
			h.lost()
		}
	}
}

// flush returns when h's present position is stored, by whichever write, trying
// again until ctx ends, or with state.ErrLeaseLost. Concurrent calls share
// writes.
func (c *checkpointer) flush(ctx context.Context, h *holding) error {
	var b backoff
	var last error
	try := time.NewTimer(0)
	defer try.Stop()
	for {
		done := make(chan error, 1)
		c.mu.Lock()
		if _, ok := c.held[h]; !ok {
			c.mu.Unlock()
			return state.ErrLeaseLost
		}
		h.waiters = append(h.waiters, done)
		c.mu.Unlock()
		err := c.await(ctx, done, try.C)
		switch {
		case err == nil || errors.Is(err, state.ErrLeaseLost):
			return err
		case ctx.Err() != nil:
			return cmp.Or(last, err)
		}
		last = err
		try.Reset(b.next(transient))
	}
}

// await returns what comes by done. When it is time to try it has a write made
// that does not wait for its turn.
func (c *checkpointer) await(ctx context.Context, done <-chan error, try <-chan time.Time) error {
	for {
		select {
		case err := <-done:
			return err
		case <-try:
			select {
			case c.kick <- struct{}{}:
			default:
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// write is one position on its way to the store.
type write struct {
	holding *holding
	waiters []chan error
}

// round stores every position that has moved.
func (c *checkpointer) round(ctx context.Context) {
	writes, cs := c.moved()
	if len(cs) == 0 {
		c.done(0, 0, nil)
		return
	}
	start := time.Now()
	errs := c.store.checkpoint(ctx, cs)
	var first error
	for i, w := range writes {
		var err error
		if errs != nil {
			err = errs[i]
		}
		switch {
		case err == nil:
			c.mu.Lock()
			w.holding.stored, w.holding.agreed = cs[i].Position, start
			c.mu.Unlock()
		case errors.Is(err, state.ErrLeaseLost):
			c.drop(w.holding)
			w.holding.lost()
		case first == nil:
			first = err
		}
		tellAll(w.waiters, err)
	}
	c.done(len(cs), time.Since(start), first)
}

// moved observes every holding and returns those to be stored. It holds the
// lock, so that none is observed after it was dropped.
func (c *checkpointer) moved() (writes []write, cs []state.Checkpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { // of a panic in a hook: nobody waits for ever
		if v := recover(); v != nil {
			for _, w := range writes {
				tellAll(w.waiters, panicked(v))
			}
			panic(v)
		}
	}()
	for h := range c.held {
		h.observe()
		pos, waiters := h.position(), h.waiters
		h.waiters = nil
		if pos == h.stored {
			h.agreed = time.Now()
			tellAll(waiters, nil)
			continue
		}
		writes = append(writes, write{h, waiters})
		cs = append(cs, state.Checkpoint{Lease: h.lease, Position: pos})
	}
	return writes, cs
}

func tellAll(waiters []chan error, err error) {
	for _, w := range waiters {
		w <- err
	}
}

// unproven returns the shards whose watermark moved longer than bound ago, and
// of which nobody has seen since that it is stored.
func (c *checkpointer) unproven(bound time.Duration) (shards []string, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for h := range c.held {
		if time.Since(h.agreed) > bound && h.position() != h.stored {
			shards = append(shards, h.lease.ShardID)
			if since.IsZero() || h.agreed.Before(since) {
				since = h.agreed
			}
		}
	}
	slices.Sort(shards)
	return shards, since
}
