package statetest

import (
	"context"
	"sync"

	"github.com/sluicehq/sluice/state"
)

// Deaf is a Store that ignores the contexts of its calls, like a state file on a
// full or failing disk. While it hangs, no call returns; later it carries out
// every call. Its methods are safe for concurrent use.
type Deaf struct {
	Store state.Store

	mu   sync.Mutex
	hung chan struct{} // closed when the store continues; nil: it does not hang
}

var _ state.Store = (*Deaf)(nil)

// Hang makes all calls hang.
func (d *Deaf) Hang() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hung == nil {
		d.hung = make(chan struct{})
	}
}

// GoOn carries out all hanging and later calls.
func (d *Deaf) GoOn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hung != nil {
		close(d.hung)
		d.hung = nil
	}
}

// hear waits while the store hangs, and returns a context that does not end.
func (d *Deaf) hear(ctx context.Context) context.Context {
	d.mu.Lock()
	hung := d.hung
	d.mu.Unlock()
	if hung != nil {
		<-hung
	}
	return context.WithoutCancel(ctx)
}

// Start implements state.Store.
func (d *Deaf) Start(ctx context.Context, s state.Stream, want state.Start) (state.Start, error) {
	return d.Store.Start(d.hear(ctx), s, want)
}

// Streams implements state.Store.
func (d *Deaf) Streams(ctx context.Context, app string) ([]state.Stream, error) {
	return d.Store.Streams(d.hear(ctx), app)
}

// Shards implements state.Store.
func (d *Deaf) Shards(ctx context.Context, s state.Stream) ([]state.Shard, error) {
	return d.Store.Shards(d.hear(ctx), s)
}

// Finish implements state.Store.
func (d *Deaf) Finish(ctx context.Context, s state.Stream, shardIDs ...string) error {
	return d.Store.Finish(d.hear(ctx), s, shardIDs...)
}

// Claim implements state.Store.
func (d *Deaf) Claim(ctx context.Context, s state.Stream, shardID, parent, owner string) (state.Shard, error) {
	return d.Store.Claim(d.hear(ctx), s, shardID, parent, owner)
}

// Checkpoint implements state.Store.
func (d *Deaf) Checkpoint(ctx context.Context, cs []state.Checkpoint) []error {
	return d.Store.Checkpoint(d.hear(ctx), cs)
}

// Release implements state.Store.
func (d *Deaf) Release(ctx context.Context, l state.Lease) error {
	return d.Store.Release(d.hear(ctx), l)
}

// Forget implements state.Store.
func (d *Deaf) Forget(ctx context.Context, s state.Stream, shardIDs ...string) error {
	return d.Store.Forget(d.hear(ctx), s, shardIDs...)
}

// Heartbeat implements state.Store.
func (d *Deaf) Heartbeat(ctx context.Context, owner string) error {
	return d.Store.Heartbeat(d.hear(ctx), owner)
}

// Close implements state.Store.
func (d *Deaf) Close() error {
	d.hear(context.Background())
	return d.Store.Close()
}
