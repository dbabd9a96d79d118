package snapshot

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
)

// seen are the records that handlers got.
type seen struct {
	mu    sync.Mutex
	calls map[string]int
}

func (s *seen) add(rec *sluice.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]int{}
	}
	s.calls[key(rec)]++
}

func (s *seen) count() (keys, calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.calls {
		calls += n
	}
	return len(s.calls), calls
}

// all fails the test unless each of the stub's items was seen, and none but
// those; it returns how many calls there were.
func (s *seen) all(t *testing.T, st *stub) int {
	t.Helper()
	for pk := range st.items {
		if s.calls[pk] == 0 && !st.hidden(pk) {
			t.Errorf("item %s was skipped", pk)
		}
	}
	keys, calls := s.count()
	if keys > len(st.items) {
		t.Errorf("%d keys of %d items", keys, len(st.items))
	}
	return calls
}

// routed makes a router whose one route takes orders.
func routed(h sluice.Handler, opts ...router.Option) *router.Router {
	r := router.New()
	r.Handle("order#SNAPSHOT", h, append([]router.Option{router.Backoff(time.Millisecond, 10*time.Millisecond)}, opts...)...)
	return r
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func testOptions(store Store) Options {
	return Options{Table: tableName, Store: store, Scan: ScanOptions{Logger: quiet()}}
}

func newSource(t *testing.T, st *stub, m sluice.Matcher, o Options) *Source {
	t.Helper()
	s, err := New(st.config(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run reads the table to its end.
func run(t *testing.T, st *stub, m sluice.Matcher, o Options) *Source {
	t.Helper()
	s := newSource(t, st, m, o)
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := s.Progress(); !p.Finished {
		t.Fatalf("not finished: %+v", p)
	}
	return s
}

func into(s *seen) sluice.Handler {
	return func(_ context.Context, rec *sluice.Record) error {
		s.add(rec)
		return nil
	}
}
