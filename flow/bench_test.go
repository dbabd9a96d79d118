package flow

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// BenchmarkFlow is what a record costs from Submit to the watermark with one
// route whose handler does nothing.
func BenchmarkFlow(b *testing.B) {
	const pageSize = 1000
	page := make([]sluice.Record, pageSize)
	for i := range page {
		page[i] = rec(fmt.Sprint("item-", i), i)
	}
	hooks := Hooks{Handled: func(context.Context, *sluice.Record, *sluice.Route, Result, time.Duration, error) {}}
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"default", Options{}},
		{"one slot", Options{Concurrency: 1}},
		{"by shard", Options{Order: ByShard}},
		{"with a hook", Options{Hooks: hooks}},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := Open(b.Context(), routes(ok), c.o)
			b.ReportAllocs()
			for i := 0; i < b.N; i += pageSize {
				if _, err := f.Submit(b.Context(), page[:min(pageSize, b.N-i)]...); err != nil {
					b.Fatal(err)
				}
			}
			if n, err := f.Close(b.Context()); n != uint64(b.N) || err != nil {
				b.Fatal(n, err)
			}
		})
	}
}

// BenchmarkBatch is a Lambda batch of 100 records in a flow of its own.
func BenchmarkBatch(b *testing.B) {
	m, page := routes(ok), many("x", 100)
	g := NewGroup(m)
	b.ReportAllocs()
	for b.Loop() {
		f := Open(b.Context(), m, Options{Policy: Stop, Group: g})
		if _, err := f.Submit(b.Context(), page...); err != nil {
			b.Fatal(err)
		}
		if n, err := f.Close(b.Context()); n != 100 || err != nil {
			b.Fatal(n, err)
		}
	}
}

// BenchmarkSharedGroup is what a record costs when eight flows share a Group,
// by the state of their route: calm, with a limit of its own that binds nobody,
// and after one item has failed.
func BenchmarkSharedGroup(b *testing.B) {
	const flows, pageSize = 8, 1000
	pages := make([][]sluice.Record, flows)
	for i := range pages {
		for n := range pageSize {
			pages[i] = append(pages[i], rec(fmt.Sprint("item-", i, "-", n), n))
		}
	}
	for _, c := range []struct {
		name  string
		limit int
		fails bool
	}{
		{name: "calm"},
		{name: "limited", limit: 1 << 20},
		{name: "one item failed", fails: true},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := routes(ok)
			m.routes[0].Concurrency = c.limit
			g := NewGroup(m)
			if c.fails {
				g.gates[0].ended(nil, 1, failed, errDown)
			}
			b.ReportAllocs()
			var wg sync.WaitGroup
			for i := range flows {
				wg.Go(func() {
					f := Open(b.Context(), m, Options{Group: g, Logger: quiet})
					n := b.N / flows
					for left := n; left > 0; left -= pageSize {
						if _, err := f.Submit(b.Context(), pages[i][:min(pageSize, left)]...); err != nil {
							b.Error(err)
							return
						}
					}
					if got, err := f.Close(b.Context()); got != uint64(n) || err != nil {
						b.Error(got, err)
					}
				})
			}
			wg.Wait()
		})
	}
}
