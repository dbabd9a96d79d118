package snapshot

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/job"
	"github.com/sluicehq/sluice/state"
)

// several is a store of several workers in one process.
type several struct{ *state.Memory }

func (several) SilentAfter() time.Duration { return time.Second }

func (s several) Fork() state.Store { return s }

func (s several) SwapValue(ctx context.Context, app, name string, seen, data []byte) (bool, error) {
	now, ok, err := s.GetValue(ctx, app, name)
	if err != nil || ok != (seen != nil) || string(now) != string(seen) {
		return false, err
	}
	return true, s.PutValue(ctx, app, name, data)
}

func newBook(store Store) *book {
	return &book{store: store, app: "app", name: "backfill//t", timeout: time.Minute, saved: func(time.Duration, error) {}}
}

// A worker that lost a segment cannot say that it is finished, and its progress does not
// count.
func TestFencedFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), several{state.NewMemory()}
		b := newBook(store)
		if err := b.begin(ctx, head{Segments: 1}); err != nil {
			t.Fatal(err)
		}
		claimed := func() (*fleet, *segment) {
			f := &fleet{store: store, book: b, owner: job.NewOwner(store)}
			l, _, err := f.claim(ctx, b.segment(0))
			if err != nil {
				t.Fatal(err)
			}
			return f, &segment{lease: l}
		}
		old, lost := claimed()
		old.owner.End()
		time.Sleep(time.Minute) // it is silent
		now, g := claimed()
		defer now.owner.End()
		if err := now.put(ctx, g, mark{sum: sum{Items: 3}}); err != nil {
			t.Fatal(err)
		}
		for _, m := range []mark{{Done: true, sum: sum{Items: 9}}, {sum: sum{Items: 8}}} {
			if err := old.put(ctx, lost, m); !errors.Is(err, state.ErrLeaseLost) {
				t.Errorf("%+v of the old owner: %v, want ErrLeaseLost", m, err)
			}
		}
		marks, err := b.marks(ctx)
		if err != nil || marks[0].Done || marks[0].Items != 3 {
			t.Errorf("%+v, %v; want what the new owner stored", marks, err)
		}
		all, err := store.Shards(ctx, job.Stream("app"))
		if err != nil || len(all) != 1 || all[0].Position.Finished || all[0].Owner != now.owner.Name() {
			t.Errorf("%+v, %v", all, err)
		}
		// Who finds it finished knows how many items it had, also without its last mark.
		if err := now.put(ctx, g, mark{Done: true, sum: sum{Items: 5}}); err != nil {
			t.Fatal(err)
		}
		all, err = store.Shards(ctx, job.Stream("app"))
		if want := (state.Position{Sequence: "5", Finished: true}); err != nil || all[0].Position != want {
			t.Errorf("%+v, %v; want %+v", all, err, want)
		}
	})
}

// Of two workers that have read the same head one begins the backfill, and one finishes it.
func TestHeadChangesOnce(t *testing.T) {
	ctx, store := t.Context(), several{state.NewMemory()}
	first, second := newBook(store), newBook(store)
	load := func(b *book) {
		if _, err := b.load(ctx, quiet()); err != nil {
			t.Fatal(err)
		}
	}
	load(first)
	load(second)
	if err := errors.Join(first.begin(ctx, head{Segments: 1}), first.put(ctx, first.segment(0), mark{})); err != nil {
		t.Fatal(err)
	}
	if err := second.begin(ctx, head{Segments: 2}); !errors.Is(err, errOther) {
		t.Errorf("the second begins: %v, want errOther", err)
	}
	if marks, err := store.ListValues(ctx, "app", first.segment(0)); err != nil || len(marks) != 1 {
		t.Errorf("the second has deleted the progress of the first: %v, %v", marks, err)
	}
	load(second)
	if err := second.finish(ctx, sum{Items: 7}); err != nil || second.head.Generation != first.head.Generation {
		t.Errorf("%v, of generation %s, want %s", err, second.head.Generation, first.head.Generation)
	}
	if err := first.finish(ctx, sum{Items: 8}); !errors.Is(err, errOther) {
		t.Errorf("the first finishes, too: %v, want errOther", err)
	}
	if load(first); first.head.Sum == nil || first.head.Sum.Items != 7 {
		t.Errorf("%+v, want the end that was stored first", first.head)
	}
}
