package batch_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/flow"
)

// BenchmarkFlow measures a record from Submit to the watermark. Its handler sends one
// item to an instant service.
func BenchmarkFlow(b *testing.B) {
	for _, maxItems := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint("max", maxItems), func(b *testing.B) {
			var requests atomic.Int64
			sink := batch.New(func(context.Context, []string) []error {
				requests.Add(1)
				return nil
			}, func(s string) int { return len(s) }, batch.Options{MaxItems: maxItems, MaxBytes: 1 << 20})
			f := open(b.Context(), func(ctx context.Context, rec *sluice.Record) error {
				return sink.Do(ctx, string(rec.Sequence))
			}, flow.Options{})
			page := records(4000, 4000)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i += len(page) {
				if _, err := f.Submit(b.Context(), page[:min(len(page), b.N-i)]...); err != nil {
					b.Fatal(err)
				}
			}
			if n, err := f.Close(b.Context()); n != uint64(b.N) || err != nil {
				b.Fatal(n, err)
			}
			b.ReportMetric(float64(b.N)/float64(requests.Load()), "items/request")
		})
	}
}

// BenchmarkDo is one call that nobody shares.
func BenchmarkDo(b *testing.B) {
	sink := batch.New(func(context.Context, []int) []error { return nil }, nil, batch.Options{MaxItems: 1})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := sink.Do(b.Context(), i); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDoAll is ten items of one caller in one commit.
func BenchmarkDoAll(b *testing.B) {
	sink := batch.New(func(context.Context, []int) []error { return nil }, nil, batch.Options{MaxItems: 10})
	items := make([]int, 10)
	b.ReportAllocs()
	for b.Loop() {
		if errs := sink.DoAll(b.Context(), items); errs != nil {
			b.Fatal(errs)
		}
	}
}
