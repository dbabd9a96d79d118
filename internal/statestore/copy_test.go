package statestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

const app = "shop"

var orders = state.Stream{Application: app, ARN: "arn:aws:dynamodb:eu-west-1:1:table/orders/stream/2026-01-02T03:04:05.678"}

func file(t *testing.T) Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "state.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// memory is a Store without what a copy does not use. A letter's label is a value.
type memory struct{ *state.Memory }

func (memory) Applications(context.Context) ([]string, error)               { panic("unused") }
func (memory) ResetShards(context.Context, state.Stream, ...string) error   { panic("unused") }
func (memory) ResetStream(context.Context, state.Stream, state.Start) error { panic("unused") }
func (memory) LabelLetters(context.Context, string, func(string, []byte) []byte) error {
	panic("unused")
}

func (m memory) PutLabelled(ctx context.Context, app, id string, data, label []byte) error {
	return errors.Join(m.PutLetter(ctx, app, id, data), m.PutValue(ctx, app+" labels", id, label))
}

func (m memory) ListLabels(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	letters, err := m.ListLetters(ctx, app, after, limit)
	for i, l := range letters {
		letters[i].Data, _, _ = m.GetValue(ctx, app+" labels", l.ID)
	}
	return letters, err
}

// filled returns a state with shards of three generations, values, and so many
// labelled letters.
func filled(t *testing.T, s Store, letters int) Store {
	t.Helper()
	ctx := t.Context()
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Start(ctx, orders, state.Start{Position: "LATEST", At: time.Date(2026, 1, 2, 3, 4, 5, 678000000, time.UTC)})
	must(err)
	settle := func(id, parent string, p state.Position, release bool) {
		t.Helper()
		sh, err := s.Claim(ctx, orders, id, parent, "worker")
		must(err)
		if p != (state.Position{}) {
			must(s.Checkpoint(ctx, []state.Checkpoint{{Lease: lease(orders, sh), Position: p}})...)
		}
		if release {
			must(s.Release(ctx, lease(orders, sh)))
		}
	}
	must(s.Finish(ctx, orders, "before-the-start"))
	settle("shard-9", "", state.Position{Sequence: "100000000003498069978", Finished: true}, true)
	settle("shard-5", "shard-9", state.Position{Sequence: "4421584500000000017450439091"}, true)
	settle("shard-6", "shard-9", state.Position{}, true)
	settle("shard-1", "shard-6", state.Position{Finished: true}, true)
	settle("shard-2", "trimmed", state.Position{Sequence: "7"}, true)
	for i := range letters {
		must(s.PutLabelled(ctx, app, fmt.Sprintf("%040d-a", i), []byte(strings.Repeat("x", i)), []byte{byte(i)}))
	}
	must(s.PutLetter(ctx, app, "without-label", []byte("y")))
	must(s.PutValue(ctx, app, "backfill/x", []byte("z")), s.PutValue(ctx, "other", "backfill/x", nil))
	return s
}

// dump is all that a store has of the application, but for owners and epochs.
func dump(t *testing.T, s Store) string {
	t.Helper()
	ctx := t.Context()
	var b strings.Builder
	streams, err := s.Streams(ctx, app)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range streams {
		start, err := s.Start(ctx, st, state.Start{})
		fmt.Fprintln(&b, st.ARN, start, err)
		shards, err := s.Shards(ctx, st)
		if err != nil {
			t.Fatal(err)
		}
		lines := map[string]string{}
		for _, sh := range shards {
			lines[sh.ID] = fmt.Sprint(sh.Parent, sh.Position)
		}
		fmt.Fprintln(&b, lines)
	}
	labels, err := s.ListLabels(ctx, app, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	letters, err := s.ListLetters(ctx, app, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	values, err := s.ListValues(ctx, app, "")
	fmt.Fprintln(&b, labels, letters, values, err)
	return b.String()
}

func TestCopy(t *testing.T) {
	const letters = letterPage + 1
	from, to := filled(t, file(t), letters), file(t)
	want := dump(t, from)
	rows := 0
	copied, err := Copy(t.Context(), from, nil, app, true, func() { rows++ })
	if counted := (Copied{app, 1, 6, letters + 1, 1}); err != nil || copied != counted {
		t.Errorf("dry: %+v, %v; want %+v", copied, err, counted)
	}
	got, err := Copy(t.Context(), from, to, app, false, func() { rows++ })
	if err != nil || got != copied || rows != 2*(6+letters+1+1) {
		t.Errorf("%+v, %v, %d rows; the dry run: %+v", got, err, rows, copied)
	}
	if have := dump(t, to); have != want {
		t.Errorf("the target has\n%s\nwant\n%s", have, want)
	}
	if have := dump(t, from); have != want {
		t.Errorf("the source has become\n%s\nwant\n%s", have, want)
	}
	if _, err := Copy(t.Context(), from, to, app, false, func() {}); !errors.Is(err, ErrTaken) {
		t.Errorf("a second copy: %v", err)
	}
	shards, err := to.Shards(t.Context(), orders)
	for _, sh := range shards {
		if sh.Owner != "" {
			t.Errorf("%s still has %s", sh.Owner, sh.ID)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// failing fails from its nth write on.
type failing struct {
	Store
	left atomic.Int64
}

var errDown = errors.New("the store is down")

func (f *failing) write() error {
	if f.left.Add(-1) < 0 {
		return errDown
	}
	return nil
}

func (f *failing) Start(ctx context.Context, s state.Stream, want state.Start) (state.Start, error) {
	if want.Position != "" {
		if err := f.write(); err != nil {
			return state.Start{}, err
		}
	}
	return f.Store.Start(ctx, s, want)
}

func (f *failing) Claim(ctx context.Context, s state.Stream, id, parent, owner string) (state.Shard, error) {
	if err := f.write(); err != nil {
		return state.Shard{}, err
	}
	return f.Store.Claim(ctx, s, id, parent, owner)
}

func (f *failing) Checkpoint(ctx context.Context, cs []state.Checkpoint) []error {
	if err := f.write(); err != nil {
		return []error{err}
	}
	return f.Store.Checkpoint(ctx, cs)
}

func (f *failing) Release(ctx context.Context, l state.Lease) error {
	return errors.Join(f.write(), f.Store.Release(ctx, l))
}

func (f *failing) PutLabelled(ctx context.Context, app, id string, data, label []byte) error {
	if err := f.write(); err != nil {
		return err
	}
	return f.Store.PutLabelled(ctx, app, id, data, label)
}

func (f *failing) PutValue(ctx context.Context, app, name string, data []byte) error {
	if err := f.write(); err != nil {
		return err
	}
	return f.Store.PutValue(ctx, app, name, data)
}

// Wherever a copy ends, the target has no start of the stream: a daemon would ask
// where to begin. The next copy completes the target.
func TestCopyThatFails(t *testing.T) { synctest.Test(t, testCopyThatFails) }

func testCopyThatFails(t *testing.T) {
	from := filled(t, memory{state.NewMemory()}, 1)
	want := dump(t, from)
	done := false
	for writes := 0; !done; writes++ {
		to := &failing{Store: memory{state.NewMemory()}}
		to.left.Store(int64(writes))
		_, err := Copy(t.Context(), from, to, app, false, func() {})
		if done = err == nil; done && writes < 1+2+3*6 {
			t.Fatalf("done after %d writes", writes)
		}
		if !done && !errors.Is(err, errDown) {
			t.Fatalf("%d writes: %v", writes, err)
		}
		if _, err := to.Store.Start(t.Context(), orders, state.Start{}); done == errors.Is(err, state.ErrNoStart) {
			t.Errorf("%d writes, done %v: the start of the target: %v", writes, done, err)
		}
		to.left.Store(1 << 40)
		if _, err := Copy(t.Context(), from, to, app, false, func() {}); done != errors.Is(err, ErrTaken) {
			t.Errorf("%d writes, done %v: the next copy: %v", writes, done, err)
		}
		if have := dump(t, to); have != want {
			t.Errorf("%d writes: the target has\n%s\nwant\n%s", writes, have, want)
		}
	}
}

// A worker that lives keeps its shard: nothing is copied that it may change.
func TestCopyBesideAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := filled(t, memory{state.NewMemory()}, 1), memory{state.NewMemory()}
		if _, err := from.Claim(t.Context(), orders, "shard-5", "shard-9", "worker"); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		go func() {
			for ctx.Err() == nil {
				_ = from.Heartbeat(ctx, "worker")
				time.Sleep(time.Second)
			}
		}()
		if _, err := Copy(t.Context(), from, to, app, false, func() {}); !errors.Is(err, state.ErrHeld) {
			t.Errorf("beside a worker: %v", err)
		}
		if _, err := to.Start(t.Context(), orders, state.Start{}); !errors.Is(err, state.ErrNoStart) {
			t.Errorf("the target has a start: %v", err)
		}
		end()
		begun := time.Now()
		if _, err := Copy(t.Context(), from, to, app, false, func() {}); err != nil {
			t.Errorf("once it is dead: %v", err)
		}
		if waited := time.Since(begun); waited > 2*staterules.OwnerTimeout {
			t.Errorf("waited %v", waited)
		}
		synctest.Wait()
	})
}

func TestGenerations(t *testing.T) {
	var shards []state.Shard
	for _, pair := range []string{"d c", "c b", "b a", "a ", "e a", "x y", "y x", "z z", "t trimmed"} {
		id, parent, _ := strings.Cut(pair, " ")
		shards = append(shards, state.Shard{ID: id, Parent: parent})
	}
	at := map[string]int{}
	for i, generation := range generations(shards) {
		for _, sh := range generation {
			at[sh.ID] = i
		}
	}
	if len(at) != len(shards) || at["a"] != 0 || at["t"] != 0 || at["b"] != 1 || at["e"] != 1 || at["c"] != 2 || at["d"] != 3 {
		t.Errorf("%v", at)
	}
}

func TestTable(t *testing.T) {
	for place, want := range map[string]string{"dynamodb:t": "t true", "dynamodb:": " true", "sluice.db": "sluice.db false", "/a/dynamodb:t": "/a/dynamodb:t false"} {
		if name, ok := Table(place); fmt.Sprint(name, " ", ok) != want {
			t.Errorf("%s: %s %v, want %s", place, name, ok, want)
		}
	}
}
