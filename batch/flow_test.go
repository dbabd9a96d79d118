package batch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
)

const rtt = 10 * time.Millisecond

// one is a Matcher with a single route.
type one struct{ route sluice.Route }

func (o *one) Routes() []*sluice.Route { return []*sluice.Route{&o.route} }
func (o *one) Match(dst []*sluice.Route, _ *sluice.Record) ([]*sluice.Route, error) {
	return append(dst, &o.route), nil
}

func open(ctx context.Context, h sluice.Handler, o flow.Options) *flow.Flow {
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	return flow.Open(ctx, &one{sluice.Route{Name: "send", Handler: h, Attempts: 1 << 20, Backoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond}}, o)
}

// records makes n changes of keys items.
func records(n, keys int) []sluice.Record {
	recs := make([]sluice.Record, n)
	for i := range recs {
		it, err := item.Parse(fmt.Appendf(nil, `{"pk":{"S":"item-%d"}}`, i%keys))
		if err != nil {
			panic(err)
		}
		recs[i] = sluice.Record{EventName: sluice.Modify, Table: "t", Keys: it, Sequence: recordtest.Sequence(i + 1), SizeBytes: 100}
	}
	return recs
}

// service counts requests; each takes one round trip.
type service struct {
	mu    sync.Mutex
	sizes []int
}

func (s *service) commit(_ context.Context, items []string) []error {
	time.Sleep(rtt)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes = append(s.sizes, len(items))
	return nil
}

func send(b *batch.Batcher[string]) sluice.Handler {
	return func(ctx context.Context, rec *sluice.Record) error { return b.Do(ctx, string(rec.Sequence)) }
}

func handle(t *testing.T, recs []sluice.Record, h sluice.Handler, o flow.Options) {
	t.Helper()
	f := open(t.Context(), h, o)
	if _, err := f.Submit(t.Context(), recs...); err != nil {
		t.Error(err)
	}
	if n, err := f.Close(t.Context()); n != uint64(len(recs)) || err != nil {
		t.Errorf("%d settled: %v", n, err)
	}
}

// No batch here waits for a linger.
func TestRecordsShareRequests(t *testing.T) {
	for _, c := range []struct {
		name    string
		records int
		handler func(a, b *batch.Batcher[string]) sluice.Handler
		want    []int // sizes at the first sink
		took    time.Duration
	}{
		{"a lone record waits for nothing", 1, nil, []int{1}, rtt},
		{"a hundred fill their requests", 100, nil, slices.Repeat([]int{10}, 10), rtt},
		{"what is left goes with them", 95, nil, append([]int{5}, slices.Repeat([]int{10}, 9)...), rtt},
		{"and so at a second sink", 100, func(a, b *batch.Batcher[string]) sluice.Handler {
			return func(ctx context.Context, rec *sluice.Record) error {
				return errors.Join(send(a)(ctx, rec), send(b)(ctx, rec))
			}
		}, slices.Repeat([]int{10}, 10), 2 * rtt},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at [2]service
				var sinks [2]*batch.Batcher[string]
				for i := range sinks {
					sinks[i] = batch.New(at[i].commit, nil, batch.Options{MaxItems: 10, InFlight: 16, Linger: -1})
				}
				h := send(sinks[0])
				if c.handler != nil {
					h = c.handler(sinks[0], sinks[1])
				}
				start := time.Now()
				handle(t, records(c.records, c.records), h, flow.Options{Concurrency: 8})
				if took := time.Since(start); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				slices.Sort(at[0].sizes)
				if !slices.Equal(at[0].sizes, c.want) {
					t.Errorf("requests of %v, want %v", at[0].sizes, c.want)
				}
				if c.handler != nil {
					if slices.Sort(at[1].sizes); !slices.Equal(at[1].sizes, c.want) {
						t.Errorf("requests of %v at the second sink, want %v", at[1].sizes, c.want)
					}
				}
			})
		})
	}
}

// One record from each of 2,000 shards: a due batch stays open until a slot is free,
// and takes the items of other flows.
func TestManyFlowsShareRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s service
		b := batch.New(s.commit, nil, batch.Options{MaxItems: 10, InFlight: 4, Linger: -1})
		rec := records(1, 1)
		var wg sync.WaitGroup
		for i := range 2000 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Microsecond)
				handle(t, rec, send(b), flow.Options{})
			})
		}
		wg.Wait()
		if n := len(s.sizes); n > 210 {
			t.Errorf("%d requests for 2,000 records, want about 204", n)
		}
	})
}

// A user's semaphore held across a send hides who could still join: slower by
// the linger, never stuck.
func TestSemaphoreAroundASend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s service
		b := batch.New(s.commit, nil, batch.Options{Linger: 5 * time.Millisecond})
		semaphore := make(chan struct{}, 2)
		start := time.Now()
		handle(t, records(20, 20), func(ctx context.Context, rec *sluice.Record) error {
			semaphore <- struct{}{}
			defer func() { <-semaphore }()
			return b.Do(ctx, string(rec.Sequence))
		}, flow.Options{})
		if took, most := time.Since(start), 10*(rtt+5*time.Millisecond); took > most {
			t.Errorf("took %v, want at most %v", took, most)
		}
	})
}

// With a linger for ever, a lost signal between flows and sinks is a deadlock.
// What is settled must be durable, and one item's changes land in order.
func TestSeedsWithFlows(t *testing.T) { seedsWithFlows(t, 50) }

func seedsWithFlows(t *testing.T, seeds uint64) {
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { history(t, seed) })
		if t.Failed() {
			return
		}
	}
}

func history(t *testing.T, seed uint64) {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 5))
	roll := func(n int) int { mu.Lock(); defer mu.Unlock(); return rng.IntN(n) }
	type change struct{ flow, item, n int }
	landed := map[change]int{} // at which sinks, as bits
	latest := map[change]int{} // of an item at a sink
	newSink := func(at int) *batch.Batcher[change] {
		return batch.New(func(_ context.Context, items []change) []error {
			time.Sleep(time.Duration(roll(20)) * time.Millisecond)
			if roll(12) == 0 {
				panic("commit")
			}
			errs := make([]error, len(items))
			bad := roll(8)
			mu.Lock()
			defer mu.Unlock()
			for i, c := range items {
				if i == bad {
					errs[i] = errors.New("this one not")
					continue
				}
				landed[c] |= 1 << at
				id := change{c.flow, c.item, at}
				if c.n < latest[id] {
					t.Errorf("seed %d: change %d of item %d landed after %d", seed, c.n, c.item, latest[id])
				}
				latest[id] = c.n
			}
			return errs
		}, nil, batch.Options{MaxItems: 1 + roll(20), InFlight: 1 + roll(4), Linger: -1})
	}
	sinks := []*batch.Batcher[change]{newSink(0), newSink(1)}
	var wg sync.WaitGroup
	for fl := range 1 + roll(3) {
		n, keys := 1+roll(150), 1+roll(40)
		o := flow.Options{Concurrency: 1 + roll(16), Window: 1 + roll(100), StuckAfter: time.Hour}
		wg.Go(func() {
			handle(t, records(n, keys), func(ctx context.Context, rec *sluice.Record) error {
				i := recordtest.Nth(rec.Sequence)
				c := change{fl, (i - 1) % keys, i}
				switch roll(12) {
				case 0:
					panic("handler")
				case 1:
					time.Sleep(time.Duration(roll(50)) * time.Millisecond)
				case 2:
					return errors.New("failed")
				case 3: // both at once
					errs := make([]error, 2)
					var g sync.WaitGroup
					for k := range sinks {
						g.Go(func() { errs[k] = sinks[k].Do(ctx, c) })
					}
					g.Wait()
					return errors.Join(errs...)
				case 4: // its own, short timeout
					short, cancel := context.WithTimeout(ctx, time.Duration(roll(10))*time.Millisecond)
					defer cancel()
					ctx = short
				}
				if err := sinks[0].Do(ctx, c); err != nil {
					return err
				}
				return sinks[1].Do(ctx, c)
			}, o)
			mu.Lock()
			defer mu.Unlock()
			for i := range n {
				if c := (change{fl, i % keys, i + 1}); landed[c] != 3 {
					t.Errorf("seed %d: change %v is settled, but is not at both sinks (%b)", seed, c, landed[c])
				}
			}
		})
	}
	wg.Wait()
}
