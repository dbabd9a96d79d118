// Package quorum tells group commits that nobody is left who could join them.
//
// A flow has a Scope; its count is the handlers that run and are not waiting
// in a sink, plus the Submits in progress. When the count falls to zero or
// below, every batch that a member of the scope has joined becomes due. It is
// an optimisation: a batch that is never told becomes due by its linger.
package quorum

import (
	"context"
	"sync"
	"sync/atomic"
)

// Due is an open batch; MarkDue must not block and may be called repeatedly.
type Due interface{ MarkDue() }

// Scope counts who may still join. Its zero value is ready; it must not be copied.
type Scope struct {
	active atomic.Int64
	mu     sync.Mutex
	open   []Due
}

// Enter counts n more in, without looking at idleness.
func (s *Scope) Enter(n int) { s.active.Add(int64(n)) }

// Leave counts n out and, when nobody is left, makes the open batches due. It
// must not be called with a lock held that MarkDue or a flow needs.
func (s *Scope) Leave(n int) {}

// Idle reports whether nobody is left who could join.
func (s *Scope) Idle() bool { return s.active.Load() <= 0 }

// Watch has b told when the scope becomes idle; Unwatch ends it.
func (s *Scope) Watch(b Due)   {}
func (s *Scope) Unwatch(b Due) {}

// Host is the flow that runs a member: it gets the concurrency slots back of
// handlers that wait in a sink, and must count them again when they wake.
type Host interface {
	Parked(n int)   // n handlers began to wait; may start others
	Unparked(n int) // n handlers were woken; must not block
}

// Member is one running handler. A flow's worker has one and reuses it for
// record after record.
type Member struct {
	Scope *Scope
	Host  Host
	depth atomic.Int32 // goroutines of this handler that wait in a sink
}

type key struct{}

// With returns a context that carries m; From finds it, or nil.
func With(ctx context.Context, m *Member) context.Context { return context.WithValue(ctx, key{}, m) }
func From(ctx context.Context) *Member                    { m, _ := ctx.Value(key{}).(*Member); return m }

// Park says that a goroutine of this handler begins to wait in a sink.
func (m *Member) Park() {}

// Unpark says, for each of ms, that one of its goroutines is about to be
// released. All callers of a commit are unparked before any is released. Nil
// entries are passed over.
func Unpark(ms []*Member) {}
