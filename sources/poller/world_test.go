package poller_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// world is a table whose stream is read by Pollers, in a bubble. It notes what
// they hand out and compares that with what was written.
type world struct {
	*testing.T
	svc   *streamtest.Service
	table *streamtest.Table // "orders"
	store state.Store
	o     poller.Options // of the next start

	// handle, if set, is called before a record counts as handled.
	handle func(ctx context.Context, name string) error

	paused bool // the route, of the next start

	versions map[string]int // of each item

	mu     sync.Mutex
	got    []handled
	events []string // shards as numbers
	gaps   []sluice.Gap
}

// handled is one call of the handler that returned nil.
type handled struct {
	name string // the item and its version, as in "a2"
	arn  string
	seq  sluice.Sequence
}

func inWorld(t *testing.T, o streamtest.TableOptions, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, svc: streamtest.NewService(t), store: state.NewMemory(), versions: make(map[string]int)}
		w.table = w.svc.CreateTable("orders", o)
		w.o = poller.Options{Streams: []poller.Stream{{Table: "orders"}}, Start: poller.TrimHorizon,
			BusyInterval: time.Second, IdleInterval: 10 * time.Second, Logger: slog.New(slog.DiscardHandler)}
		f(w)
	})
}

// daemon is one Poller that runs.
type daemon struct {
	*poller.Poller
	w    *world
	stop context.CancelFunc
	done chan error
}

func (w *world) start() *daemon {
	w.Helper()
	o := w.o
	if o.Store == nil {
		o.Store = w.store
	}
	hooks := o.Hooks
	o.Hooks.ShardStarted = func(s poller.Shard, after sluice.Sequence) {
		w.note("started %d", s)
		if hooks.ShardStarted != nil {
			hooks.ShardStarted(s, after)
		}
	}
	o.Hooks.ShardEnded = func(s poller.Shard, end poller.End) { w.note(string(end)+" %d", s) }
	o.Hooks.Gap = func(g sluice.Gap) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.gaps = append(w.gaps, g)
	}
	m := matcher{&sluice.Route{Name: "test", Handler: w.handler}}
	if w.paused {
		o.Flow.Group = flow.NewGroup(m)
		o.Flow.Group.Throttle("test", flow.Throttle{Paused: true})
	}
	p, err := poller.New(w.svc.Config(), m, o)
	if err != nil {
		w.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.Context())
	d := &daemon{Poller: p, w: w, stop: stop, done: make(chan error, 1)}
	go func() { d.done <- p.Run(ctx) }()
	synctest.Wait()
	return d
}

// end stops the Poller in order.
func (d *daemon) end() {
	d.w.Helper()
	d.stop()
	if err := <-d.done; err != nil {
		d.w.Errorf("Run: %v", err)
	}
}

// unready wants a reason with part in it; empty wants the Poller to be ready.
func (d *daemon) unready(part string) {
	d.w.Helper()
	h := d.NotReady()
	if reasons := strings.Join(h, "\n"); len(h) == 0 != (part == "") || !strings.Contains(reasons, part) {
		d.w.Errorf("ready %v, want the reason %q in: %s", len(h) == 0, part, reasons)
	}
}

type matcher struct{ route *sluice.Route }

func (m matcher) Match(dst []*sluice.Route, _ *sluice.Record) ([]*sluice.Route, error) {
	return append(dst, m.route), nil
}
func (m matcher) Routes() []*sluice.Route { return []*sluice.Route{m.route} }

func (w *world) handler(ctx context.Context, rec *sluice.Record) error {
	var item struct {
		PK string `dynamodbav:"pk"`
		V  int    `dynamodbav:"v"`
	}
	if err := rec.New.Decode(&item); err != nil {
		return err
	}
	name := fmt.Sprint(item.PK, item.V)
	if w.handle != nil {
		if err := w.handle(ctx, name); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, handled{name, rec.StreamARN, rec.Sequence})
	return nil
}

func (w *world) note(format string, s poller.Shard) {
	n := slices.IndexFunc(w.table.Shards(), func(sh streamtest.ShardInfo) bool { return sh.ID == s.ID })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf(format, n))
}

// put writes the next version of each item.
func (w *world) put(keys ...string) {
	w.Helper()
	for _, k := range keys {
		w.versions[k]++
		w.table.Put(map[string]any{"pk": k, "v": w.versions[k]})
	}
}

// keys returns n names of items.
func keys(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("item%d-", i))
	}
	return all
}

// shard returns the id of the nth shard that is not trimmed away.
func (w *world) shard(n int) string {
	w.Helper()
	return w.table.Shards()[n].ID
}

func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// handled returns what was handled, in order, and whatever it was twice.
func (w *world) handled() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, h := range w.got {
		names = append(names, h.name)
	}
	return strings.Join(names, " ")
}

// wantHandled wants exactly these changes, and those of an item in order. Items are
// handled concurrently.
func (w *world) wantHandled(when, want string) {
	w.Helper()
	if got := w.handled(); byItem(got) != byItem(want) {
		w.Errorf("%s: handled %q, want %q", when, got, want)
	}
}

func byItem(changes string) string {
	names := strings.Fields(changes)
	item := func(name string) string { return strings.TrimRight(name, "0123456789") }
	slices.SortStableFunc(names, func(a, b string) int { return strings.Compare(item(a), item(b)) })
	return strings.Join(names, " ")
}

// once wants every change to be handled exactly once, and those of an item in
// order. It takes changes that begin with the nth.
func (w *world) once(from int) {
	w.Helper()
	w.complete(from)
	w.mu.Lock()
	defer w.mu.Unlock()
	if changes := len(w.table.Changes()) - from; len(w.got) != changes {
		w.Errorf("%d calls were made for %d changes", len(w.got), changes)
	}
}

// complete wants every change to be handled, and each after those of its item
// that were made before it.
func (w *world) complete(from int) {
	w.Helper()
	changes := w.table.Changes()[from:]
	type place struct {
		arn string
		seq sluice.Sequence
	}
	nth := make(map[place]int) // among the changes of its item, from 1
	items := make(map[place]string)
	last := make(map[string]int)
	for _, c := range changes {
		key := string(c.Keys.Raw())
		last[key]++
		nth[place{c.StreamARN, c.Sequence}], items[place{c.StreamARN, c.Sequence}] = last[key], key
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	done := make(map[string]int)
	for _, h := range w.got {
		at := place{h.arn, h.seq}
		n, ok := nth[at]
		if !ok {
			w.Errorf("%s was handled, which is no change", h.name)
			continue
		}
		if n > done[items[at]]+1 {
			w.Errorf("%s was handled before change %d of its item", h.name, done[items[at]]+1)
		}
		done[items[at]] = max(done[items[at]], n)
	}
	for key, n := range last {
		if done[key] != n {
			w.Errorf("%s: %d of %d changes were handled", key, done[key], n)
		}
	}
}

// calls returns the service's calls of an operation about a shard; an empty
// shard is any.
func (w *world) calls(op, shard string) []streamtest.Call {
	return slices.DeleteFunc(w.svc.Calls(), func(c streamtest.Call) bool {
		return c.Op != op || shard != "" && c.Shard != shard
	})
}

// iterators returns the types of the iterators that were asked for.
func (w *world) iterators(shard string) string {
	var kinds []string
	for _, c := range w.calls("GetShardIterator", shard) {
		kinds = append(kinds, c.Iterator)
	}
	return strings.Join(kinds, " ")
}

// stored returns what the store has of a shard.
func (w *world) stored(id string) state.Shard {
	w.Helper()
	shards, err := w.store.Shards(w.Context(), state.Stream{Application: "sluice", ARN: w.table.StreamARN()})
	if err != nil {
		w.Fatal(err)
	}
	for _, sh := range shards {
		if sh.ID == id {
			return sh
		}
	}
	return state.Shard{}
}

func (w *world) log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.events, ", ")
}

// calm has the next start do little in days.
func (w *world) calm() {
	w.o.BusyInterval, w.o.IdleInterval, w.o.DiscoverEvery = 10*time.Minute, 10*time.Minute, 5*time.Minute
	w.o.CheckpointEvery, w.o.HeartbeatEvery, w.o.StaleAfter = time.Minute, time.Minute, 30*time.Minute
}

// rows returns the ids of the shards that are stored.
func (w *world) rows() (ids []string) {
	w.Helper()
	shards, err := w.store.Shards(w.Context(), state.Stream{Application: "sluice", ARN: w.table.StreamARN()})
	if err != nil {
		w.Fatal(err)
	}
	for _, sh := range shards {
		ids = append(ids, sh.ID)
	}
	return ids
}
