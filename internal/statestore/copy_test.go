package statestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

const app = "shop"

var (
	lines  = state.Stream{Application: app, ARN: "arn:aws:dynamodb:eu-west-1:1:table/lines/stream/2026-01-02T03:04:05.678"}
	orders = state.Stream{Application: app, ARN: "arn:aws:dynamodb:eu-west-1:1:table/orders/stream/2026-01-02T03:04:05.678"}
)

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

// filled returns a state of two streams, with shards of three generations, values, and so many
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
	_, err = s.Start(ctx, lines, state.Start{Position: "TRIM_HORIZON"})
	must(err)
	sh, err := s.Claim(ctx, lines, "shard-1", "", "worker")
	must(err)
	must(s.Release(ctx, lease(lines, sh)))
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
	if counted := (Copied{app, 2, 7, letters + 1, 1}); err != nil || copied != counted {
		t.Errorf("dry: %+v, %v; want %+v", copied, err, counted)
	}
	got, err := Copy(t.Context(), from, to, app, false, func() { rows++ })
	if err != nil || got != copied || rows != 2*(7+letters+1+1) {
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
	for _, s := range []Store{from, to} {
		shards, err := s.Shards(t.Context(), orders)
		for _, sh := range shards {
			if sh.Owner != "" {
				t.Errorf("%s still has %s", sh.Owner, sh.ID)
			}
		}
		if err != nil {
			t.Error(err)
		}
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

func (f *failing) DeleteValue(ctx context.Context, app, name string) error {
	if err := f.write(); err != nil {
		return err
	}
	return f.Store.DeleteValue(ctx, app, name)
}

// Wherever a copy ends, no daemon begins on the target, until a next copy has
// completed it. That one begins anew: it leaves nothing that the source has no more.
func TestCopyThatFails(t *testing.T) { synctest.Test(t, testCopyThatFails) }

func testCopyThatFails(t *testing.T) {
	from := filled(t, file(t), 1)
	done := false
	for writes := 1; !done; writes++ { // the first is the mark
		if err := errors.Join(from.PutLetter(t.Context(), app, "redriven", nil), from.PutValue(t.Context(), app, "ended", nil)); err != nil {
			t.Fatal(err)
		}
		to := &failing{Store: file(t)}
		to.left.Store(int64(writes))
		_, err := Copy(t.Context(), from, to, app, false, func() {})
		if done = err == nil; done && writes < 1+2+3+2*6+4+2+1 {
			t.Fatalf("done after %d writes", writes)
		}
		if !done && !errors.Is(err, errDown) {
			t.Fatalf("%d writes: %v", writes, err)
		}
		if err := Ready(t.Context(), to, app); done != (err == nil) || !done && !errors.Is(err, ErrUnfinished) {
			t.Errorf("%d writes, done %v: the target is ready: %v", writes, done, err)
		}
		if !done {
			if err := errors.Join(from.DeleteLetter(t.Context(), app, "redriven"), from.DeleteValue(t.Context(), app, "ended")); err != nil {
				t.Fatal(err)
			}
		}
		to.left.Store(1 << 40)
		if _, err := Copy(t.Context(), from, to, app, false, func() {}); done != errors.Is(err, ErrTaken) {
			t.Errorf("%d writes, done %v: the next copy: %v", writes, done, err)
		}
		if have, want := dump(t, to), dump(t, from); have != want {
			t.Errorf("%d writes: the target has\n%s\nwant\n%s", writes, have, want)
		}
	}
}

// A copy of a copy that has not ended is refused.
func TestCopyOfAnUnfinishedCopy(t *testing.T) {
	from := filled(t, file(t), 1)
	if err := from.PutValue(t.Context(), app, unfinished, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Copy(t.Context(), from, file(t), app, false, func() {}); !errors.Is(err, ErrUnfinished) {
		t.Error(err)
	}
}

// draining is a state whose worker ends while its shards are claimed: it parks a
// record, begins a child, and releases.
type draining struct {
	Store
	once sync.Once
	t    *testing.T
}

func (d *draining) Claim(ctx context.Context, s state.Stream, id, parent, owner string) (state.Shard, error) {
	d.once.Do(func() {
		sh, err := d.Store.Claim(ctx, orders, "shard-5", "shard-9", "worker")
		if err != nil {
			d.t.Fatal(err)
		}
		child, err := d.Store.Claim(ctx, orders, "child", "shard-5", "worker")
		if err != nil {
			d.t.Fatal(err)
		}
		if err := errors.Join(
			d.PutLetter(ctx, app, "late", []byte("late")),
			errors.Join(d.Checkpoint(ctx, []state.Checkpoint{{Lease: lease(orders, sh), Position: state.Position{Sequence: "4421584500000000017450439092"}}})...),
			d.Release(ctx, lease(orders, sh)), d.Release(ctx, lease(orders, child)),
		); err != nil {
			d.t.Fatal(err)
		}
	})
	return d.Store.Claim(ctx, s, id, parent, owner)
}

// What a worker stores until its last shard is free is copied.
func TestCopyBesideADrain(t *testing.T) {
	from, to := &draining{Store: filled(t, file(t), 1), t: t}, file(t)
	if _, err := Copy(t.Context(), from, to, app, false, func() {}); err != nil {
		t.Fatal(err)
	}
	if have, want := dump(t, to), dump(t, from); have != want || !strings.Contains(have, "late") || !strings.Contains(have, "439092") || !strings.Contains(have, "child") {
		t.Errorf("the target has\n%s\nwant\n%s", have, want)
	}
}

// A long copy keeps its claims: no worker begins beside it.
func TestCopyKeepsItsClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := filled(t, file(t), 1), file(t)
		rows := 0
		_, err := Copy(t.Context(), from, to, app, false, func() {
			if rows++; rows == 2 {
				time.Sleep(time.Minute)
				if _, err := from.Claim(t.Context(), orders, "shard-5", "shard-9", "worker"); !errors.Is(err, state.ErrHeld) {
					t.Errorf("a claim beside the copy: %v", err)
				}
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// inUse is a table with a worker.
type inUse struct {
	Store
	worker holders.Worker
}

func (inUse) Publish(string) {}

func (s inUse) Workers(context.Context, string) ([]holders.Worker, error) {
	return []holders.Worker{s.worker}, nil
}

// A dry run refuses what the copy would.
func TestDryCopyBesideAWorker(t *testing.T) {
	from := filled(t, file(t), 1)
	for state, refused := range map[holders.State]bool{holders.Living: true, holders.Silent: false, holders.Fenced: false} {
		w := holders.Worker{Name: "host/1/A", State: state, Shards: make([]holders.Held, 3)}
		_, err := Copy(t.Context(), inUse{from, w}, nil, app, true, func() {})
		if refused != (err != nil && strings.Contains(err.Error(), "stop it first: host/1/A has 3 shards")) || !refused && err != nil {
			t.Errorf("beside a %s worker: %v", state, err)
		}
	}
}

// A worker that lives keeps its shard: nothing is copied that it may change.
func TestCopyBesideAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := filled(t, file(t), 1), file(t)
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
		if streams, err := to.Streams(t.Context(), app); err != nil || len(streams) > 0 {
			t.Errorf("the target has %v, %v", streams, err)
		}
		if err := Ready(t.Context(), to, app); err != nil {
			t.Errorf("the target is marked: %v", err)
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

func TestCheck(t *testing.T) {
	for place, ok := range map[string]bool{
		"sluice.db": true, "./a:b": true, "/x/a:b": true, "x.d/a:b": true, `C:\state.db`: true, "dynamodb:sluice-state": true, "dynamodb:arn:aws:dynamodb:eu-west-1:1:table/abc": true,
		"DynamoDB:abc": false, "dynamo:abc": false, "dynamodb:": false, "dynamodb://abc": false, "dynamodb:a b c": false,
	} {
		if err := Check(place); (err == nil) != ok {
			t.Errorf("%s: %v", place, err)
		}
	}
}

func TestTable(t *testing.T) {
	for place, want := range map[string]string{"dynamodb:t": "t true", "dynamodb:": " true", "sluice.db": "sluice.db false", "/a/dynamodb:t": "/a/dynamodb:t false"} {
		if name, ok := Table(place); fmt.Sprint(name, " ", ok) != want {
			t.Errorf("%s: %s %v, want %s", place, name, ok, want)
		}
	}
}
