package poller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/sluicehq/sluice/state"
)

// store makes the calls to Options.Store. Each call has CallTimeout, but a state
// file ignores it: bbolt ignores contexts. So each call has its own goroutine, and
// the caller waits for it until the end of Run's Grace, and no longer.
//
// The caller does not stop waiting after CallTimeout, because an abandoned call
// may still take effect, and a later call could overtake it. So calls keep the
// order of their callers, and late results of a slow store count. NotReady names a
// call that is overdue.
//
// A call abandoned at the end counts as failed. If the store completes it later,
// that does no harm: the position was settled, and the next claim ends its lease.
type store struct {
	of      state.Store
	timeout time.Duration
	health  *health
	log     *slog.Logger
	over    chan struct{} // closed at the end of Grace
}

func newStore(o Options, h *health) *store {
	return &store{of: o.Store, timeout: o.CallTimeout, health: h, log: o.Logger, over: make(chan struct{})}
}

// leave abandons running and later calls.
func (s *store) leave() { close(s.over) }

// Names of calls, for NotReady and the log.
const (
	claimShard     = "claim"
	storePositions = "checkpoint"
	heartbeat      = "heartbeat"
	moveShards     = "moves"
)

// answer is what a call returned.
type answer[T any] struct {
	value T
	err   error
}

// ask makes one call. NotReady reports it under its name.
func ask[T any](ctx context.Context, s *store, name string, call func(context.Context) (T, error)) (T, error) {
	var none T
	select {
	case <-s.over: // so that it cannot overtake an abandoned call
		return none, fmt.Errorf("%s: the time to stop is over", name)
	default:
	}
	done := make(chan answer[T], 1)
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	began := s.health.begun(name)
	go func() {
		var a answer[T]
		defer func() {
			if v := recover(); v != nil {
				a.err = panicked(v)
			}
			cancel()
			s.health.returned(began)
			done <- a
		}()
		a.value, a.err = call(ctx)
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-s.over:
	}
	select {
	case a := <-done: // it returned in time
		return a.value, a.err
	default:
	}
	cancel()
	s.log.Error("a call to the state store has not returned and is left behind", "call", name, "since", began.since)
	return none, fmt.Errorf("%s has not returned since %s and is left behind: see that the disk of the state store is there, has room and can be written",
		name, began.since.Format(time.RFC3339))
}

// tell is ask for a call that returns only an error.
func tell(ctx context.Context, s *store, name string, call func(context.Context) error) error {
	_, err := ask(ctx, s, name, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) })
	return err
}

func (s *store) start(ctx context.Context, st state.Stream, want state.Start) (state.Start, error) {
	return ask(ctx, s, "start", func(ctx context.Context) (state.Start, error) { return s.of.Start(ctx, st, want) })
}

func (s *store) streams(ctx context.Context, app string) ([]state.Stream, error) {
	return ask(ctx, s, "streams", func(ctx context.Context) ([]state.Stream, error) { return s.of.Streams(ctx, app) })
}

func (s *store) shards(ctx context.Context, st state.Stream) ([]state.Shard, error) {
	return ask(ctx, s, "shards", func(ctx context.Context) ([]state.Shard, error) { return s.of.Shards(ctx, st) })
}

func (s *store) finish(ctx context.Context, st state.Stream, ids ...string) error {
	return tell(ctx, s, "finish", func(ctx context.Context) error { return s.of.Finish(ctx, st, ids...) })
}

func (s *store) claim(ctx context.Context, st state.Stream, id, parent, owner string) (state.Shard, error) {
	return ask(ctx, s, claimShard, func(ctx context.Context) (state.Shard, error) { return s.of.Claim(ctx, st, id, parent, owner) })
}

// Checkpoint is what a checkpoints.Store has.
func (s *store) Checkpoint(ctx context.Context, cs []state.Checkpoint) []error {
	errs, err := ask(ctx, s, storePositions, func(ctx context.Context) ([]error, error) { return s.of.Checkpoint(ctx, cs), nil })
	if err != nil {
		errs = slices.Repeat([]error{err}, len(cs))
	}
	return errs
}

func (s *store) release(ctx context.Context, l state.Lease) error {
	return tell(ctx, s, "release", func(ctx context.Context) error { return s.of.Release(ctx, l) })
}

func (s *store) forget(ctx context.Context, st state.Stream, ids ...string) error {
	return tell(ctx, s, "forget", func(ctx context.Context) error { return s.of.Forget(ctx, st, ids...) })
}

func (s *store) heartbeat(ctx context.Context, owner string) error {
	return tell(ctx, s, heartbeat, func(ctx context.Context) error { return s.of.Heartbeat(ctx, owner) })
}

// panicError is a panic that was recovered from.
type panicError struct {
	value any
	stack []byte
}

func panicked(v any) error { return &panicError{v, debug.Stack()} }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

// brief is err for NotReady without a stack; the log has the stack.
func brief(err error) error {
	if p := (*panicError)(nil); errors.As(err, &p) {
		return fmt.Errorf("panic: %v; the log has its goroutine", p.value)
	}
	return err
}
