package poller_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/sluicehq/sluice/state"
)

// flaky is a store whose calls fail when fail says so.
type flaky struct {
	state.Store
	fail  func(call string) error // nil: never
	calls func(call string)
}

func (f *flaky) try(call string) error {
	if f.calls != nil {
		f.calls(call)
	}
	if f.fail == nil {
		return nil
	}
	return f.fail(call)
}

func (f *flaky) Claim(ctx context.Context, s state.Stream, id, parent, owner string) (state.Shard, error) {
	if err := f.try("claim"); err != nil {
		return state.Shard{}, err
	}
	return f.Store.Claim(ctx, s, id, parent, owner)
}

func (f *flaky) Checkpoint(ctx context.Context, cs []state.Checkpoint) []error {
	if err := f.try("checkpoint"); err != nil {
		errs := make([]error, len(cs))
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	return f.Store.Checkpoint(ctx, cs)
}

func (f *flaky) Heartbeat(ctx context.Context, owner string) error {
	if err := f.try("heartbeat"); err != nil {
		return err
	}
	return f.Store.Heartbeat(ctx, owner)
}

func (f *flaky) Shards(ctx context.Context, s state.Stream) ([]state.Shard, error) {
	if err := f.try("shards"); err != nil {
		return nil, err
	}
	return f.Store.Shards(ctx, s)
}

func (f *flaky) Release(ctx context.Context, l state.Lease) error {
	if err := f.try("release"); err != nil {
		return err
	}
	return f.Store.Release(ctx, l)
}

func (f *flaky) Forget(ctx context.Context, s state.Stream, ids ...string) error {
	if err := f.try("forget"); err != nil {
		return err
	}
	return f.Store.Forget(ctx, s, ids...)
}

var errStore = errors.New("the store is away")

// crashing has the next start use a store that the returned function cuts off:
// what happens then is as if the process had been killed, and its end returns
// errStore or a context's error.
func (w *world) crashing() (crash func(d *daemon)) {
	var down atomic.Bool
	w.o.Store = &flaky{Store: w.store, fail: func(string) error {
		if down.Load() {
			return errStore
		}
		return nil
	}}
	return func(d *daemon) {
		down.Store(true)
		d.stop()
		<-d.done
		w.o.Store = nil
	}
}

// take makes the shard another owner's, whatever the one that has it thinks.
func (w *world) take(id string) state.Lease {
	w.Helper()
	st := state.Stream{Application: "sluice", ARN: w.table.StreamARN()}
	sh := w.stored(id)
	if err := w.store.Release(w.Context(), state.Lease{Stream: st, ShardID: id, Owner: sh.Owner, Epoch: sh.Epoch}); err != nil {
		w.Fatal(err)
	}
	sh, err := w.store.Claim(w.Context(), st, id, "", "another")
	if err != nil {
		w.Fatal(err)
	}
	return state.Lease{Stream: st, ShardID: id, Owner: "another", Epoch: sh.Epoch}
}

// workers returns the stacks of goroutines that read or settle shards.
func workers() string {
	buf := make([]byte, 1<<20)
	var found []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "poller.(*worker)") || strings.Contains(stack, "poller.(*reader)") || strings.Contains(stack, "sluice/flow.") {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}
