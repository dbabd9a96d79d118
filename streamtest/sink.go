package streamtest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluicehq/sluice"
)

// Sink replaces the target of a handler's writes: it records the calls of its
// Send, and fails selected ones. Send fits functions of two parameters; for others
// use a closure:
//
//	var queue streamtest.Sink[escalation.Message]
//	c.Send = queue.Send
//	var failed streamtest.Sink[string]
//	c.Fail = func(ctx context.Context, e escalation.Escalation, reason string) error {
//		return failed.Send(ctx, e.ID+": "+reason)
//	}
//
// The zero Sink is ready to use and succeeds. Its methods are safe for concurrent
// use.
type Sink[T any] struct {
	mu      sync.Mutex
	calls   []SinkCall[T]
	scripts []*sinkScript[T] // the first with an error for a call counts
}

// SinkCall is one call of Send.
type SinkCall[T any] struct {
	Value T
	Err   error  // result of Send
	Order uint64 // greater than that of every earlier call of any Sink
}

type sinkScript[T any] func(ctx context.Context, n int, v T) error

var sinkOrder atomic.Uint64

// Send records v. It returns nil, the error that the Sink should fail with, or,
// when ctx has ended, its cause. Like a real sink it does not keep v's memory: it
// copies slices, maps, and values with a Clone method.
func (s *Sink[T]) Send(ctx context.Context, v T) error {
	call := SinkCall[T]{Value: deepCopy(v), Err: context.Cause(ctx)}
	s.mu.Lock()
	call.Order = sinkOrder.Add(1)
	n := len(s.calls)
	s.calls = append(s.calls, call)
	scripts := slices.Clone(s.scripts)
	s.mu.Unlock()
	for i := 0; i < len(scripts) && call.Err == nil; i++ {
		call.Err = (*scripts[i])(ctx, n+1, v)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[n].Err = call.Err
	return call.Err
}

// Calls returns all calls in the order in which they began. The Err of a running
// call is nil.
func (s *Sink[T]) Calls() []SinkCall[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Values returns the values of the successful calls, in order.
func (s *Sink[T]) Values() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	var values []T
	for _, c := range s.calls {
		if c.Err == nil {
			values = append(values, c.Value)
		}
	}
	return values
}

// Fail lets f decide the end of each call: n counts all calls of the Sink from 1.
// f may block, for example until ctx ends, and must be safe for concurrent use.
// With several, the first that returns an error counts. remove removes f.
func (s *Sink[T]) Fail(f func(ctx context.Context, n int, v T) error) (remove func()) {
	script := sinkScript[T](f)
	return register(&s.mu, &s.scripts, &script)
}

// register adds v to list, which mu guards. The returned function removes it.
func register[T any](mu *sync.Mutex, list *[]*T, v *T) (remove func()) {
	mu.Lock()
	defer mu.Unlock()
	*list = append(*list, v)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		*list = slices.DeleteFunc(*list, func(o *T) bool { return o == v })
	}
}

// FailNth makes the n-th call from now on, counted from 1, fail with err.
func (s *Sink[T]) FailNth(n int, err error) {
	from := s.count()
	s.Fail(func(_ context.Context, nth int, _ T) error {
		if nth == from+n {
			return err
		}
		return nil
	})
}

// FailFirst makes the next n calls fail with err.
func (s *Sink[T]) FailFirst(n int, err error) {
	until := s.count() + n
	s.Fail(func(_ context.Context, nth int, _ T) error {
		if nth <= until {
			return err
		}
		return nil
	})
}

// FailIf makes calls fail with err if match reports true for their value, until
// remove is called.
func (s *Sink[T]) FailIf(match func(T) bool, err error) (remove func()) {
	return s.Fail(func(_ context.Context, _ int, v T) error {
		if match(v) {
			return err
		}
		return nil
	})
}

// FailAll makes every call fail with err until remove is called.
func (s *Sink[T]) FailAll(err error) (remove func()) {
	return s.FailIf(func(T) bool { return true }, err)
}

func (s *Sink[T]) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

// Handler records its records, like a Sink: register its Handle. Values and Calls
// hold copies.
type Handler struct{ Sink[*sluice.Record] }

// Handle is a [sluice.Handler].
func (h *Handler) Handle(ctx context.Context, rec *sluice.Record) error { return h.Send(ctx, rec) }

// DeadLetters records the records that a flow parks, like a Sink. It is a
// flow.DeadLetter. Values and Calls hold copies.
type DeadLetters struct{ Sink[Letter] }

// Letter is one parked record and its failure.
type Letter struct {
	Record  *sluice.Record
	Failure sluice.Failure
}

// Park implements flow.DeadLetter.
func (d *DeadLetters) Park(ctx context.Context, rec *sluice.Record, f sluice.Failure) error {
	return d.Send(ctx, Letter{rec, f})
}
