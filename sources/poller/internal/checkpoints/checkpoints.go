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

// Store is the part of a state.Store that a Checkpointer needs.
type Store interface {
	// Checkpoint stores each position independently. It returns one error for each
	// position, or nil if it stored all.
	Checkpoint(context.Context, []state.Checkpoint) []error
}

// Holding is a shard that this process owns. The Checkpointer calls its functions
// under its lock or in its goroutine: they must be fast, and must not call the
// Checkpointer.
type Holding struct {
	Lease    state.Lease
	Stored   state.Position        // stored position at the call of Hold
	Position func() state.Position // settled position
	Observe  func()                // called each round, never after Drop
	Lost     func()                // called once, when another owner has the lease

	// Guarded by the Checkpointer's lock.
	agreed  time.Time // last time that the settled position was stored
	tried   time.Time // last write of a position
	waiters []chan error
}

// Config configures a Checkpointer. No field but PerSecond may be nil or 0.
type Config struct {
	Store Store
	Every time.Duration // between writes
	// PerSecond limits the positions that are stored in a second on average, without
	// the first one of a Holding, and those that a Flush waits for. 0 is no limit.
	PerSecond int
	// Done is called after each round, with the first error of the round.
	Done func(shards int, took time.Duration, err error)
	// RetryIn is the delay of Flush after a number of consecutive failures.
	RetryIn func(failures int) time.Duration
	// Panicked makes the error that waiting Flush calls return when a function of a
	// Holding panics with v. The panic continues.
	Panicked func(v any) error
}

// Checkpointer stores the positions of all Holdings in one call. It is safe for
// concurrent use.
type Checkpointer struct {
	config Config

	kick chan struct{} // has room for one

	mu   sync.Mutex
	held map[*Holding]struct{}
	pace pace
}

// New returns a Checkpointer without Holdings.
func New(c Config) *Checkpointer {
	return &Checkpointer{config: c, held: make(map[*Holding]struct{}), kick: make(chan struct{}, 1)}
}

// Run stores positions until ctx ends. Only the end of writes cancels a call in
// progress.
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

// Hold starts storing the positions of h, until Drop.
func (c *Checkpointer) Hold(h *Holding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.agreed = time.Now()
	c.held[h] = struct{}{}
}

// Drop stops storing the positions of h.
func (c *Checkpointer) Drop(h *Holding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, h)
}

// Check drops the Holdings that have a later epoch in the store. So it finds a lost
// lease whose position does not move; a store finds the others.
func (c *Checkpointer) Check(stream state.Stream, stored []state.Shard) {
	epochs := make(map[string]uint64, len(stored))
	for _, sh := range stored {
		epochs[sh.ID] = sh.Epoch
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for h := range c.held {
		if h.Lease.Stream == stream && epochs[h.Lease.ShardID] > h.Lease.Epoch {
			c.lose(h)
		}
	}
}

// Lose drops the Holdings of an owner that has lost all its leases.
func (c *Checkpointer) Lose(owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for h := range c.held {
		if h.Lease.Owner == owner {
			c.lose(h)
		}
	}
}

// lose drops a Holding whose lease is lost, and ends the calls of Flush that wait for
// it. mu is held.
func (c *Checkpointer) lose(h *Holding) {
	delete(c.held, h)
	tellAll(h.waiters, state.ErrLeaseLost)
	h.waiters = nil
	h.Lost()
}

// Flush returns when any write has stored h's current position. It retries until ctx
// ends, and returns state.ErrLeaseLost if the lease is lost. Concurrent calls share
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

// await returns the error from done. At each value from try it starts a write without
// waiting for the next tick.
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

// write is a position in a call to the store.
type write struct {
	holding  *Holding
	position state.Position
	waiters  []chan error
}

// Round stores every moved position that PerSecond allows.
func (c *Checkpointer) Round(ctx context.Context) {
	writes := c.moved()
	if len(writes) == 0 {
		c.config.Done(0, 0, nil)
		return
	}
	cs := make([]state.Checkpoint, len(writes))
	for i, w := range writes {
		cs[i] = state.Checkpoint{Lease: w.holding.Lease, Position: w.position}
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
			w.holding.Stored, w.holding.agreed = w.position, start
			c.mu.Unlock()
		case errors.Is(err, state.ErrLeaseLost):
			c.mu.Lock()
			if _, ok := c.held[w.holding]; ok {
				c.lose(w.holding)
			}
			c.mu.Unlock()
		case first == nil:
			first = err
		}
		tellAll(w.waiters, err)
	}
	c.config.Done(len(cs), time.Since(start), first)
}

// moved observes every Holding and returns the positions to store now. The lock
// prevents observing a dropped Holding.
func (c *Checkpointer) moved() (writes []write) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { // after a panic in a hook no Flush waits for ever
		if v := recover(); v != nil {
			for _, w := range writes {
				tellAll(w.waiters, c.config.Panicked(v))
			}
			panic(v)
		}
	}()
	var others []write
	for h := range c.held {
		h.Observe()
		pos, waiters := h.Position(), h.waiters
		h.waiters = nil
		if pos == h.Stored {
			h.agreed = time.Now()
			tellAll(waiters, nil)
			continue
		}
		if w := (write{h, pos, waiters}); len(waiters) > 0 || h.tried.IsZero() {
			writes, h.tried = append(writes, w), time.Now()
		} else {
			others = append(others, w)
		}
	}
	return append(writes, c.paced(others)...)
}

func tellAll(waiters []chan error, err error) {
	for _, w := range waiters {
		w <- err
	}
}

// Unproven returns the shards whose watermark moved and has not been stored since. The
// move is longer ago than late, beyond the time that PerSecond lets a shard wait; since
// is the earliest such time.
func (c *Checkpointer) Unproven(late time.Duration) (shards []string, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bound := late + c.interval()
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
