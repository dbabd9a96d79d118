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
	position func() state.Position // position that may be stored now
	observe  func()                // called each round, never after drop
	lost     func()                // another owner has the lease; called once

	// Guarded by the checkpointer's lock.
	stored  state.Position
	agreed  time.Time // when the storable position last equalled the stored one
	waiters []chan error
}

// checkpointer stores the positions of all owned shards in one call.
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

// run stores positions until ctx ends. The end of writes, not of ctx, cancels a
// running call.
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

// check drops holdings that the store has with a later epoch. It finds a lost
// lease whose position does not move. A write finds every other lost lease.
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

// flush returns when h's current position is stored, by any write. It retries
// until ctx ends, or returns state.ErrLeaseLost. Concurrent calls share writes.
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

// await returns the result from done. At try it starts a write at once.
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

// moved observes every holding and returns the positions to store. It holds the
// lock, so no holding is observed after it was dropped.
func (c *checkpointer) moved() (writes []write, cs []state.Checkpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { // also after a panic in a hook: callers must not wait for ever
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

// unproven returns the shards whose watermark moved longer than bound ago without
// a confirmed write since.
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
