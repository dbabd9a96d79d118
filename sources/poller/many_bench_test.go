package poller

import (
	"context"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/boltstate"
)

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
