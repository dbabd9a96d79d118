// Package quorum tells group commits when no other caller could join them.
//
// A flow has a Scope. Its count is the handlers that run and do not wait in a
// sink, plus the Submits in progress. When the count falls to zero or below, every
// batch that a member of the scope has joined becomes due. It is an optimisation:
// a batch without that signal becomes due by its linger.
//
// The count may be lower than the truth, never higher: a goroutine that a handler
// left behind in a sink is subtracted, although its handler no longer counts. So
// the test is "zero or below", and a wrong count only makes a batch smaller.
package quorum

import (
	"slices"
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

// Leave counts n out. If no member is left, it makes the open batches due. Do not
// call it with a lock that MarkDue or a flow needs.
func (s *Scope) Leave(n int) {
	if s.active.Add(-int64(n)) <= 0 {
		s.markDue()
	}
}

// Idle reports whether no member is left to join.
func (s *Scope) Idle() bool { return s.active.Load() <= 0 }

// Watch makes the scope call b once when it becomes idle, unless Unwatch comes
// first. It reports whether b was not watched before. Watch b before the member
// that joined it parks, because that Park may make the scope idle.
func (s *Scope) Watch(b Due) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.open, b) {
		return false
	}
	s.open = append(s.open, b)
	return true
}

// Unwatch ends Watch; it does nothing for a batch that was already called.
func (s *Scope) Unwatch(b Due) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.open, b); i >= 0 {
		s.open = slices.Delete(s.open, i, i+1)
	}
}

// markDue tells the open batches outside the lock: they call Unwatch under
// their own.
func (s *Scope) markDue() {
	var few [8]Due // as many sinks as a flow usually feeds
	s.mu.Lock()
	open := append(few[:0], s.open...)
	clear(s.open)
	s.open = s.open[:0]
	s.mu.Unlock()
	for _, b := range open {
		b.MarkDue()
	}
}
