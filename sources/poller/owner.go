package poller

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"
)

// owner is the name of the leases, and until when others surely take it for living.
type owner struct {
	base   string
	name   atomic.Pointer[string]
	silent time.Duration // of an owner before others may claim its shards; 0: the store has one process
	vacant func() <-chan struct{}
	proof  atomic.Pointer[proof]
}

// proof is a heartbeat that was stored.
type proof struct {
	of    string
	sent  time.Time
	wall  time.Time     // sent by the other clock
	newer chan struct{} // closed by the next proof
}

// shared is a store that several processes share.
type shared interface{ SilentAfter() time.Duration }

// vacating is a store that says when to claim the shards of others.
type vacating interface{ Vacant() <-chan struct{} }

// Owner returns the name under which the poller claims shards now. It changes when the
// store finds the poller silent.
func (p *Poller) Owner() string { return p.owner.now() }

// Inherit takes over the owner of old, whose Run has ended by a [HandOver]: its shards are
// p's. Call it before Run.
func (p *Poller) Inherit(old *Poller) {
	p.owner.base = old.owner.base
	p.owner.name.Store(old.owner.name.Load())
}

func newOwner(base string) string { return base + "/" + rand.Text()[:8] }

func (o *owner) begin(name string, store any) {
	o.base = name
	o.name.Store(&name)
	if s, ok := store.(shared); ok {
		o.silent = s.SilentAfter()
	}
	o.vacant = func() <-chan struct{} { return nil }
	if s, ok := store.(vacating); ok {
		o.vacant = s.Vacant
	}
	o.proof.Store(&proof{newer: make(chan struct{})})
}

func (o *owner) now() string { return *o.name.Load() }

// replace makes a new name, unless old is not the name any more. A fenced name is
// never used again.
func (o *owner) replace(old string) bool {
	have := o.name.Load()
	next := newOwner(o.base)
	return *have == old && o.name.CompareAndSwap(have, &next)
}

// stored notes that a heartbeat is stored.
func (o *owner) stored(of string, sent time.Time) {
	close(o.proof.Swap(&proof{of, sent, sent.Round(0), make(chan struct{})}).newer)
}

// admit waits until the owner of a lease surely lives, or ctx ends. The time counts
// from the sending of the last heartbeat: nobody saw it earlier. If the two clocks of
// the machine disagree, it was suspended or set, and the next heartbeat must tell.
func (o *owner) admit(ctx context.Context, of string) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p, now := o.proof.Load(), time.Now()
		passed, byWall := now.Sub(p.sent), now.Round(0).Sub(p.wall)
		if p.of == of && passed < o.silent-o.silent/10 && (byWall-passed).Abs() < maxClockStep {
			return nil
		}
		select {
		case <-p.newer:
		case <-ctx.Done():
		}
	}
}

// maxClockStep is more than a clock is slewed between two heartbeats.
const maxClockStep = time.Second
