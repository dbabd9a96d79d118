package tracing

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
)

// BenchmarkFlow is a record through a flow: without a Tracer, not sampled, sampled.
func BenchmarkFlow(b *testing.B) {
	for name, sampler := range map[string]string{"off": "", "out": "always_off", "in": "always_on"} {
		b.Run(name, func(b *testing.B) {
			b.Setenv("OTEL_TRACES_SAMPLER", sampler)
			w := &world{}
			w.route("r", func(context.Context, *sluice.Record) error { return nil })
			o := flow.Options{Logger: slog.New(slog.DiscardHandler)}
			o.Hooks.Handled = func(context.Context, *sluice.Record, *sluice.Route, flow.Result, time.Duration, error) {}
			if sampler != "" {
				t, err := newTracer(b.Context(), tracetest.NewNoopExporter(), Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = t.Stop(context.Background()) }()
				o.Hooks.Tracer = t
			}
			f := flow.Open(b.Context(), w, o)
			recs := make([]sluice.Record, 1000)
			for i := range recs {
				recs[i] = change(strconv.Itoa(i), "")
			}
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += len(recs) {
				page := make([]sluice.Record, len(recs))
				copy(page, recs)
				if _, err := f.Submit(b.Context(), page...); err != nil {
					b.Fatal(err)
				}
			}
			if _, err := f.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
