package poller

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluicehq/sluice/state"
)

// Several pollers that share a store have about equally many shards each: the store
// says which shards to release for others. A poller releases such a shard once its
// records are settled, or after drainWithin: what is not settled then comes again at
// the other poller.

const (
	drainWithin = 2 * time.Second
	// movesEvery is between two questions to the store, which mostly make no request.
	movesEvery = 250 * time.Millisecond
)

// mover is a store that says which shards to release for others.
type mover interface {
	Moves(ctx context.Context, owner string, leaving bool) ([]state.Lease, error)
}

var errMoved = errors.New("the shard is released for another worker")

// movers are the shards that this poller reads, by lease, with what begins to release
// them.
type movers struct {
	mu   sync.Mutex
	move map[state.Lease]func()
}

func (m *movers) add(l state.Lease, move func()) (remove func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.move == nil {
		m.move = make(map[state.Lease]func())
	}
	m.move[l] = move
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.move, l)
	}
}

// release begins to release the shard of a lease. If nobody reads it, the end of its
// worker releases it anyway.
func (m *movers) release(l state.Lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if move := m.move[l]; move != nil {
		move()
	}
}

// balance releases shards for others until ctx, Run's, ends, and then tells these.
func (p *Poller) balance(ctx, beats context.Context) {
	for ctx.Err() == nil {
		p.moveShards(beats, false)
		_ = sleep(ctx, movesEvery)
	}
	p.moveShards(beats, true)
}

// moveShards asks the store which shards to release for others. The first question,
// before the first claim, says that this poller takes shards.
func (p *Poller) moveShards(ctx context.Context, leaving bool) {
	store, ok := p.o.Store.(mover)
	if !ok {
		return
	}
	leases, err := ask(ctx, p.store, moveShards, func(ctx context.Context) ([]state.Lease, error) {
		return store.Moves(ctx, p.owner.now(), leaving)
	})
	if ctx.Err() != nil || errors.Is(err, state.ErrFenced) { // the heartbeat sees to that
		return
	}
	p.health.store(moveShards, err)
	if err != nil {
		p.failed(Shard{}, moveShards, err, transient, movesEvery)
	}
	for _, l := range leases {
		p.movers.release(l)
	}
}
