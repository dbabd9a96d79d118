package poller

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/sluicehq/sluice/state"
)

// Several pollers that share a store have about equally many shards and the same work
// each: the store says which shards to release for others. A poller releases such a shard once its
// records are settled, or after drainWithin: what is not settled then comes again at
// the other poller.

const (
	drainWithin = 2 * time.Second
	// movesEvery is between two questions to the store, which mostly make no request.
	movesEvery = 250 * time.Millisecond
)

// giver is a store that says which shards to release for others.
type giver interface {
	Moves(ctx context.Context, owner string, leaving bool, work func(state.Lease) float64) ([]state.Lease, error)
}

var errMoved = errors.New("the shard is released for another worker")

// movers are the shards that this poller reads.
type movers struct {
	mu  sync.Mutex
	all map[state.Lease]mover
}

type mover struct {
	work *meter
	move func() // begins to release the shard
}

func (m *movers) add(l state.Lease, v mover) (remove func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[l] = v
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.all, l)
	}
}

// release begins to release the shard of a lease. If nobody reads it, the end of its
// worker releases it anyway.
func (m *movers) release(l state.Lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.all[l]; ok {
		v.move()
	}
}

// work returns the rate of a shard's meter; 0 if nobody reads it.
func (m *movers) work(l state.Lease) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.all[l]; ok {
		return v.work.rate()
	}
	return 0
}

// meter measures work by a mean over about a minute.
type meter struct {
	mu  sync.Mutex
	sum float64 // of the past, of which half is forgotten each halfLife
	at  time.Time
}

const halfLife = time.Minute

func (m *meter) add(work float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fade()
	m.sum += work
}

// rate returns the work of a second.
func (m *meter) rate() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fade()
	return m.sum * math.Ln2 / halfLife.Seconds()
}

func (m *meter) fade() {
	now := time.Now()
	if !m.at.IsZero() {
		m.sum *= math.Exp2(-float64(now.Sub(m.at)) / float64(halfLife))
	}
	m.at = now
}

// balance releases shards for others until ctx, Run's, ends, and then tells these.
func (p *Poller) balance(ctx, beats context.Context, store giver) {
	for ctx.Err() == nil {
		p.moveShards(beats, store, false)
		_ = sleep(ctx, movesEvery)
	}
	if !handedOver(ctx) {
		p.moveShards(beats, store, true)
	}
}

// moveShards asks the store which shards to release for others. The first question,
// before the first claim, says that this poller takes shards.
func (p *Poller) moveShards(ctx context.Context, store giver, leaving bool) {
	leases, err := ask(ctx, p.store, moveShards, func(ctx context.Context) ([]state.Lease, error) {
		return store.Moves(ctx, p.owner.now(), leaving, p.movers.work)
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
