package tracing

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/metrics"
)

// sums is a meter.
type sums struct {
	mu    sync.Mutex
	of    map[string]float64
	added chan struct{} // nil: nobody waits
}

func (s *sums) Bind(m *metrics.Metric, labels ...string) func(float64) {
	return func(v float64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.of[labels[0]] += v
		select {
		case s.added <- struct{}{}:
		default:
		}
	}
}

func (s *sums) get(outcome string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.of[outcome])
}

// hung is an exporter that waits.
type hung struct {
	release chan struct{}
	err     error
}

func (h hung) ExportSpans(ctx context.Context, _ []sdk.ReadOnlySpan) error {
	<-h.release
	return h.err
}

func (hung) Shutdown(context.Context) error { return nil }

// A collector that hangs delays no record. Half of the queue takes spans, the other one
// those with errors. The rest is counted.
func TestACollectorThatHangs(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
	t.Setenv("OTEL_TRACES_SAMPLER", "always_on")
	for _, tt := range []struct {
		err     error
		outcome string
	}{{nil, "exported"}, {errors.New("503"), "failed"}} {
		counts := &sums{of: map[string]float64{}, added: make(chan struct{}, 1)}
		h := hung{make(chan struct{}), tt.err}
		w := newTracedRoutes(t, "always_on")
		var err error
		if w.tracer, err = newTracer(t.Context(), h, Options{Metrics: counts}); err != nil {
			t.Fatal(err)
		}
		w.o.Hooks.Tracer = w.tracer
		handled := 0
		w.route("r", func(_ context.Context, rec *sluice.Record) error {
			if handled++; rec.EventID == "event-bad" {
				return sluice.Permanent(errors.New("never"))
			}
			return nil
		})
		w.o.Concurrency, w.o.DeadLetter = 1, &letters{}
		var recs []sluice.Record
		for range 100 {
			recs = append(recs, change("a", ""))
		}
		w.handle(recs...)
		w.handle(change("bad", ""))
		const made, taken = 201 + 4, 5 + 2 // pages, records, calls, a parking
		if dropped := counts.get("dropped"); handled != 101 || dropped != made-taken {
			t.Errorf("handled %d, dropped %d, want %d", handled, dropped, made-taken)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := w.tracer.Stop(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("Stop does not end with its context: %v", err)
		}
		close(h.release)
		for counts.get(tt.outcome) < taken { // or it hangs
			<-counts.added
		}
	}
}

// A collector that is down: the failure is an error, and no panic or wait.
func TestACollectorThatIsDown(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	counts := &sums{of: map[string]float64{}}
	w := newTracedRoutes(t, "always_on")
	if w.tracer, err = newTracer(t.Context(), exporter, Options{Metrics: counts}); err != nil {
		t.Fatal(err)
	}
	w.o.Hooks.Tracer = w.tracer
	w.route("r", func(context.Context, *sluice.Record) error { return nil })
	w.handle(change("a", ""))
	if err := w.tracer.Flush(t.Context()); err == nil {
		t.Error("no error")
	}
	if err := w.tracer.Stop(t.Context()); err != nil || counts.get("failed") != 3 {
		t.Errorf("%v, %d failed, want 3", err, counts.get("failed"))
	}
}

func TestEnvironment(t *testing.T) {
	for _, tt := range []struct {
		env map[string]string
		on  bool
	}{
		{nil, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, true},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true},
		{map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, false},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "TRUE"}, false},
	} {
		if got := On(func(name string) string { return tt.env[name] }); got != tt.on {
			t.Errorf("%v: on %v", tt.env, got)
		}
	}
	for name, value := range map[string]string{"OTEL_TRACES_EXPORTER": "zipkin", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"} {
		t.Setenv("OTEL_TRACES_EXPORTER", "")
		t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "")
		t.Setenv(name, value)
		if _, err := Start(t.Context(), Options{}); err == nil {
			t.Errorf("%s=%s is taken", name, value)
		}
	}
}
