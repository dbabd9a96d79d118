package quorum

import (
	"context"
	"sync/atomic"
)

// Host is the flow that runs a member: it gets the concurrency slots back of
// handlers that wait in a sink, and must count them again when they wake. The
// Scope is counted here, not by the Host; but handlers that the Host starts in
// Parked must have entered the Scope when Parked returns.
type Host interface {
	Parked(n int)   // n handlers began to wait; may start others
	Unparked(n int) // n handlers were woken; must not block
}

// Tracer follows commits: flow.Tracer says how.
type Tracer interface {
	Commit(ctx context.Context, sink string, callers []context.Context) (context.Context, func(errs []error))
}

// Member is one running handler. A flow's worker has one and reuses it for
// record after record.
type Member struct {
	Scope *Scope
	Host  Host // comparable, or nil

	Tracer Tracer // of the member's commits; nil: none

	// watcher learns when the handler waits in a sink.
	watcher atomic.Pointer[Watcher]

	// depth is the handler's goroutines that wait in a sink. It is −1 for the
	// moment in which a commit ended between a goroutine's joining and parking.
	depth atomic.Int32
}

// Watcher learns when a handler begins to wait in a sink, and when it wakes.
type Watcher interface {
	Parked() // called without locks
	Unparked()
}

// Watch sets the Watcher of the call that begins; nil ends it. A goroutine left
// behind by an earlier call may call the Watcher of a later one, and twice with
// the same event.
func (m *Member) Watch(w *Watcher) { m.watcher.Store(w) }

// Traced returns ctx, the context of a handler, if commits of its items are traced.
func Traced(ctx context.Context) context.Context {
	if m := From(ctx); m != nil && m.Tracer != nil {
		return ctx
	}
	return nil
}

// Trace begins the span of a commit of several items. callers has the context of each
// item's handler as Traced returns it. end takes an error for each item, or nil.
func Trace(ctx context.Context, sink string, callers []context.Context) (_ context.Context, end func(errs []error)) {
	for _, c := range callers {
		if c != nil {
			return From(c).Tracer.Commit(ctx, sink, callers)
		}
	}
	return ctx, func([]error) {}
}

type key struct{}

// With returns a context that carries m; From finds it, or nil.
func With(ctx context.Context, m *Member) context.Context { return context.WithValue(ctx, key{}, m) }

// From returns the member that ctx carries, or nil.
func From(ctx context.Context) *Member { m, _ := ctx.Value(key{}).(*Member); return m }

// Park says that a goroutine of this handler begins to wait in a sink. It must
// be called without locks. A nil member is passed over.
func (m *Member) Park() {
	if m == nil {
		return
	}
	if m.depth.Add(1) != 1 {
		// The handler already counts as waiting, so no count changes. But other
		// members may not have joined the batch of this goroutine.
		if m.Scope.Idle() {
			m.Scope.markDue()
		}
		return
	}
	if w := m.watcher.Load(); w != nil {
		(*w).Parked() // first: the Host may start what the Watcher makes room for
	}
	if m.Host != nil {
		m.Host.Parked(1) // before Leave: what it starts may join
	}
	m.Scope.Leave(1)
}

// Unpark notes, for each of ms, that one of its goroutines is about to be
// released. All callers of a commit are unparked before any is released. Otherwise
// the first that parks again would find the others still counted as waiting, and
// its next batch would go without them. It skips nil entries. Call it without
// locks.
func Unpark(ms []*Member) {
	var last *Member // of a run of members of one flow
	n := 0
	for _, m := range ms {
		if m == nil || m.depth.Add(-1) != 0 {
			continue
		}
		if w := m.watcher.Load(); w != nil {
			(*w).Unparked()
		}
		if last != nil && (m.Scope != last.Scope || m.Host != last.Host) {
			last.unparked(n)
			n = 0
		}
		last = m
		n++
	}
	if last != nil {
		last.unparked(n)
	}
}

func (m *Member) unparked(n int) {
	m.Scope.Enter(n)
	if m.Host != nil {
		m.Host.Unparked(n)
	}
}
