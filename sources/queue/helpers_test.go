package queue

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicehq/sluice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// routes sends every message to the route that its body names as its kind; all
// of them call handle.
type routes struct {
	list   []*sluice.Route
	handle func(ctx context.Context, rec *sluice.Record) error
}

func routesOf(handle sluice.Handler, kinds ...string) *routes {
	r := &routes{handle: handle}
	for i, kind := range kinds {
		r.list = append(r.list, &sluice.Route{Name: kind, Index: i, Handler: handle})
	}
	return r
}

func (r *routes) Routes() []*sluice.Route { return r.list }

func (r *routes) Match(dst []*sluice.Route, rec *sluice.Record) ([]*sluice.Route, error) {
	m, _ := rec.Message()
	for _, route := range r.list {
		if route.Name == m.Kind() {
			return append(dst, route), nil
		}
	}
	return dst, sluice.Permanent(fmt.Errorf("no route is for messages of the kind %q", m.Kind()))
}

// body is one of kind "job".
func body(n any) string { return fmt.Sprintf(`{"kind":"job","n":%q}`, fmt.Sprint(n)) }

// nOf returns the n that body was made with.
func nOf(rec *sluice.Record) string {
	v, _ := rec.New.Lookup("n")
	return v.Str()
}

// world is a stub and one consumer of it.
type world struct {
	t    *testing.T
	stub *stub
	line *line
	c    *Consumer
	stop func() error // ends Run and returns its error

	mu    sync.Mutex
	log   bytes.Buffer
	ends  map[End]int
	times []time.Time // of the handler's calls
	names []string    // what it was called for
}

func newWorld(t *testing.T, queues ...string) *world {
	if len(queues) == 0 {
		queues = []string{"jobs"}
	}
	w := &world{t: t, stub: newStub(queues...), ends: map[End]int{}}
	w.line = w.stub.dial()
	return w
}

func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// start runs a consumer of all queues with handle for the kind "job".
func (w *world) start(o Options, handle sluice.Handler) {
	w.t.Helper()
	w.startRoutes(o, routesOf(func(ctx context.Context, rec *sluice.Record) error {
		w.mu.Lock()
		w.times = append(w.times, time.Now())
		w.names = append(w.names, nOf(rec))
		w.mu.Unlock()
		return handle(ctx, rec)
	}, "job"))
}

func (w *world) startRoutes(o Options, m sluice.Matcher) {
	w.t.Helper()
	if o.Queues == nil {
		o.Queues = slices.Sorted(maps.Keys(w.stub.queues))
	}
	o.Logger = slog.New(slog.NewTextHandler(w, nil))
	o.Hooks.Ended = func(_ string, e End) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ends[e]++
	}
	c, err := New(w.line.config(), m, o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.c = c
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	w.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
}

// end stops the consumer, which must not fail, and leaves nothing behind.
func (w *world) end() {
	w.t.Helper()
	if err := w.stop(); err != nil {
		w.t.Error(err)
	}
}

func (w *world) expectEnds(want map[End]int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !maps.Equal(w.ends, want) {
		w.t.Errorf("messages ended %v, want %v\n%s", w.ends, want, w.log.String())
	}
}

func (w *world) expectLeft(queue string, want ...string) {
	w.t.Helper()
	if got := w.stub.left(queue); !slices.Equal(got, want) {
		w.t.Errorf("left in queue %s: %q, want %q\n%s", queue, got, want, w.logged())
	}
}

// calls returns the messages that the handler got.
func (w *world) calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.names)
}

// box is dead letters in memory.
type box struct {
	mu     sync.Mutex
	parked map[string]sluice.Failure // by message id
	err    error
}

func (b *box) Park(_ context.Context, rec *sluice.Record, f sluice.Failure) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	if b.parked == nil {
		b.parked = map[string]sluice.Failure{}
	}
	b.parked[rec.EventID] = f
	return nil
}

func (b *box) ids() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.parked))
}

func bubble(t *testing.T, f func(t *testing.T)) { t.Helper(); synctest.Test(t, f) }

// pass lets d go by, and all that is due then happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
