// Package checkpoints stores the positions of all shards that a process reads,
// in one call.
package checkpoints

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/state"
)

// Store is the part of a state store that positions go to.
type Store interface {
	// Checkpoint stores positions, each alone: the errors have the places of
	// what failed, and nil says that nothing did.
	Checkpoint(context.Context, []state.Checkpoint) []error
}

// Holding is a shard that this process owns. Its functions are called under
// the checkpointer's lock or by its goroutine: they must be fast, and must not
// call the checkpointer.
type Holding struct {
	Lease    state.Lease
	Stored   state.Position        // what the store has when Hold is called
	Position func() state.Position // what may be stored now
	Observe  func()                // called each round, never after Drop
	Lost     func()                // the lease is another's; called once

	// Under the checkpointer's lock.
	agreed  time.Time // when what could be stored was last seen to be
	waiters []chan error
}

// Config is what a checkpointer is made of. Nothing in it may be nil or 0.
type Config struct {
	Store Store
	Every time.Duration // between writes
	// Done is called after each round, with the first error of those positions
	// that could not be stored.
	Done func(shards int, took time.Duration, err error)
	// RetryIn is how long Flush waits after so many failures in a row.
	RetryIn func(failures int) time.Duration
	// Panicked returns the error that those who wait are given when a function of
	// a Holding panics with v; the panic goes on.
	Panicked func(v any) error
}

// Checkpointer stores the positions of all shards that are held, in one call.
// It is safe for concurrent use.
type Checkpointer struct {
	config Config

	mu   sync.Mutex
	held map[*Holding]struct{}
	kick chan struct{} // has room for one
}

// New returns a checkpointer that holds nothing yet.
func New(c Config) *Checkpointer {
	return &Checkpointer{config: c, held: make(map[*Holding]struct{}), kick: make(chan struct{}, 1)}
}

// Run stores positions until ctx ends. A call under way is not cut off by that,
// but by the end of writes.
func (c *Checkpointer) Run(ctx, writes context.Context) {
	tick := time.NewTicker(c.config.Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.kick:
		case <-ctx.Done():
			return
		}
		c.Round(writes)
	}
}

// Hold has the positions of h stored from now on, until Drop.
func (c *Checkpointer) Hold(h *Holding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.agreed = time.Now()
	c.held[h] = struct{}{}
}

// Drop stores no position of h any more.
func (c *Checkpointer) Drop(h *Holding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, h)
}

// Check drops the holdings that the store shows under a later epoch. It finds
// a lost lease whose position does not move; every other is found by storing.
func (c *Checkpointer) Check(stream state.Stream, stored []state.Shard) {
	epochs := make(map[string]uint64, len(stored))
	for _, sh := range stored {
		epochs[sh.ID] = sh.Epoch
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for h := range c.held {
		if h.Lease.Stream == stream && epochs[h.Lease.ShardID] > h.Lease.Epoch {
			delete(c.held, h)
			h.Lost()
		}
	}
}

// Flush returns when h's present position is stored, by whichever write, trying
// again until ctx ends, or with state.ErrLeaseLost. Concurrent calls share
// writes.
func (c *Checkpointer) Flush(ctx context.Context, h *Holding) error {
	var last error
	try := time.NewTimer(0)
	defer try.Stop()
	for failures := 1; ; failures++ {
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
		try.Reset(c.config.RetryIn(failures))
	}
}

// await returns what comes by done. When it is time to try it has a write made
// that does not wait for its turn.
func (c *Checkpointer) await(ctx context.Context, done <-chan error, try <-chan time.Time) error {
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
	holding *Holding
	waiters []chan error
}

// Round stores every position that has moved.
func (c *Checkpointer) Round(ctx context.Context) {
	writes, cs := c.moved()
	if len(cs) == 0 {
		c.config.Done(0, 0, nil)
		return
	}
	start := time.Now()
	errs := c.config.Store.Checkpoint(ctx, cs)
	var first error
	for i, w := range writes {
		var err error
		if errs != nil {
			err = errs[i]
		}
		switch {
		case err == nil:
			c.mu.Lock()
			w.holding.Stored, w.holding.agreed = cs[i].Position, start
			c.mu.Unlock()
		case errors.Is(err, state.ErrLeaseLost):
			c.Drop(w.holding)
			w.holding.Lost()
		case first == nil:
			first = err
		}
		tellAll(w.waiters, err)
	}
	c.config.Done(len(cs), time.Since(start), first)
}

// moved observes every holding and returns those to be stored. It holds the
// lock, so that none is observed after it was dropped.
func (c *Checkpointer) moved() (writes []write, cs []state.Checkpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { // of a panic in a hook: nobody waits for ever
		if v := recover(); v != nil {
			for _, w := range writes {
				tellAll(w.waiters, c.config.Panicked(v))
			}
			panic(v)
		}
	}()
	for h := range c.held {
		h.Observe()
		pos, waiters := h.Position(), h.waiters
		h.waiters = nil
		if pos == h.Stored {
			h.agreed = time.Now()
			tellAll(waiters, nil)
			continue
		}
		writes = append(writes, write{h, waiters})
		cs = append(cs, state.Checkpoint{Lease: h.Lease, Position: pos})
	}
	return writes, cs
}

func tellAll(waiters []chan error, err error) {
	for _, w := range waiters {
		w <- err
	}
}

// Unproven returns the shards whose watermark moved longer than bound ago, and
// of which nobody has seen since that it is stored.
func (c *Checkpointer) Unproven(bound time.Duration) (shards []string, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for h := range c.held {
		if time.Since(h.agreed) > bound && h.Position() != h.Stored {
			shards = append(shards, h.Lease.ShardID)
			if since.IsZero() || h.agreed.Before(since) {
				since = h.agreed
			}
		}
	}
	slices.Sort(shards)
	return shards, since
}
