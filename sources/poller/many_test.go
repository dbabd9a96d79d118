//go:build integration || long

package poller

import (
	"context"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/boltstate"
)

// TestStartOfManyShards holds the time until a thousand shards are all read to
// what the budgets of calls make it.
func TestStartOfManyShards(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	bubble(t, func(t *testing.T) {
		s := newStub()
		s.table("orders", crowd(s, "orders", 1000, 1, "")...)
		read := make(map[string]bool)
		var mu sync.Mutex
		began := time.Now()
		r := start(t, s, func(_ context.Context, rec *sluice.Record) error {
			mu.Lock()
			defer mu.Unlock()
			if read[rec.ShardID] = true; len(read) == 1 || len(read) == 1000 {
				t.Logf("%d are read after %v", len(read), time.Since(began))
			}
			return nil
		}, testOptions(state.NewMemory(), "orders"))
		pass(3 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(read) != 1000 {
			t.Errorf("%d of 1,000 shards are read after %v", len(read), time.Since(began))
		}
		r.stop()
	})
}

// BenchmarkStart is the time from Run until a record of each of a thousand
// shards was handled, with positions in a file.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s := newStub()
		s.table("orders", crowd(s, "orders", 1000, 1, "")...)
		store, err := boltstate.Open(filepath.Join(b.TempDir(), "state.db"), boltstate.Options{})
		if err != nil {
			b.Fatal(err)
		}
		var left sync.WaitGroup
		left.Add(1000)
		p, err := New(s.config(), matcher(func(context.Context, *sluice.Record) error {
			left.Done()
			return nil
		}), testOptions(store, "orders"))
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error)
		b.StartTimer()
		go func() { ended <- p.Run(ctx) }()
		left.Wait()
		b.StopTimer()
		began := time.Now()
		cancel()
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-to-stop")
		store.Close()
		b.StartTimer()
	}
}

// BenchmarkMany is what looking at a thousand idle shards costs.
func BenchmarkMany(b *testing.B) {
	s := newStub()
	s.table("orders", crowd(s, "orders", 1000, 1, "")...)
	p, err := New(s.config(), matcher(func(context.Context, *sluice.Record) error { return nil }), testOptions(state.NewMemory(), "orders"))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	for len(p.Shards()) < 1000 {
		runtime.Gosched()
	}
	for _, c := range []struct {
		name string
		call func()
	}{
		{"NotReady", func() { p.NotReady() }},
		{"Lag", func() { p.Lag() }},
		{"Shards", func() { p.Shards() }},
		{"Held", func() { p.Held() }},
		{"checkpoint", func() { p.checkpoints.Round(ctx) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.call()
			}
		})
	}
	cancel()
	<-ended
}
