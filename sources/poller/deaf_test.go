package poller

import (
	"context"
	"sync"

	"github.com/sluicehq/sluice/state"
)

// deaf is a Store that ignores the contexts of its calls, like a state file on a
// full or failing disk. While it hangs, no call returns; later it carries out
// every call. Its methods are safe for concurrent use.
type deaf struct {
	Store state.Store

	mu   sync.Mutex
	hung chan struct{} // closed when the store continues; nil: it does not hang
}

var _ state.Store = (*deaf)(nil)

// hang makes all calls hang.
func (d *deaf) hang() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hung == nil {
		d.hung = make(chan struct{})
	}
}

// goOn carries out all hanging and later calls.
func (d *deaf) goOn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hung != nil {
		close(d.hung)
		d.hung = nil
	}
}

// hear waits while the store hangs, and returns a context that does not end.
func (d *deaf) hear(ctx context.Context) context.Context {
	d.mu.Lock()
	hung := d.hung
	d.mu.Unlock()
	if hung != nil {
		<-hung
	}
	return context.WithoutCancel(ctx)
}

func (d *deaf) Start(ctx context.Context, s state.Stream, want state.Start) (state.Start, error) {
	return d.Store.Start(d.hear(ctx), s, want)
}

func (d *deaf) Streams(ctx context.Context, app string) ([]state.Stream, error) {
	return d.Store.Streams(d.hear(ctx), app)
}

func (d *deaf) Shards(ctx context.Context, s state.Stream) ([]state.Shard, error) {
	return d.Store.Shards(d.hear(ctx), s)
}

func (d *deaf) Finish(ctx context.Context, s state.Stream, shardIDs ...string) error {
	return d.Store.Finish(d.hear(ctx), s, shardIDs...)
}

func (d *deaf) Claim(ctx context.Context, s state.Stream, shardID, parent, owner string) (state.Shard, error) {
	return d.Store.Claim(d.hear(ctx), s, shardID, parent, owner)
}

func (d *deaf) Checkpoint(ctx context.Context, cs []state.Checkpoint) []error {
	return d.Store.Checkpoint(d.hear(ctx), cs)
}

func (d *deaf) Release(ctx context.Context, l state.Lease) error {
	return d.Store.Release(d.hear(ctx), l)
}

func (d *deaf) Forget(ctx context.Context, s state.Stream, shardIDs ...string) error {
	return d.Store.Forget(d.hear(ctx), s, shardIDs...)
}

func (d *deaf) Heartbeat(ctx context.Context, owner string) error {
	return d.Store.Heartbeat(d.hear(ctx), owner)
}

func (d *deaf) Close() error {
	d.hear(context.Background())
	return d.Store.Close()
}
