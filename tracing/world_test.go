package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/item"
)

// tracedRoutes runs records through a flow with a Tracer, and has the exported spans.
type tracedRoutes struct {
	t        *testing.T
	tracer   *Tracer
	exporter *tracetest.InMemoryExporter
	routes   []*sluice.Route
	o        flow.Options
}

func newTracedRoutes(t *testing.T, sampler string) *tracedRoutes {
	t.Setenv("OTEL_TRACES_SAMPLER", sampler)
	w := &tracedRoutes{t: t, exporter: tracetest.NewInMemoryExporter()}
	var err error
	if w.tracer, err = newTracer(t.Context(), w.exporter, Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.tracer.Stop(context.Background()) })
	w.o = flow.Options{Hooks: flow.Hooks{Tracer: w.tracer}, Logger: slog.New(slog.DiscardHandler)}
	return w
}

func (w *tracedRoutes) Match(dst []*sluice.Route, rec *sluice.Record) ([]*sluice.Route, error) {
	if v, ok := rec.New.Lookup("lost"); ok && v.Is("yes") {
		return nil, errors.New("no match")
	}
	return append(dst, w.routes...), nil
}

func (w *tracedRoutes) Routes() []*sluice.Route { return w.routes }

func (w *tracedRoutes) route(name string, h sluice.Handler) {
	w.routes = append(w.routes, &sluice.Route{Name: name, Index: len(w.routes), Handler: h, Backoff: time.Millisecond, MaxBackoff: time.Millisecond})
}

// change has the key id, and the attributes of more, such as {"n":{"N":"1"}}.
func change(id, more string) sluice.Record {
	keys, err := item.Parse([]byte(fmt.Sprintf(`{"id":{"S":%q}}`, id)))
	if err != nil {
		panic(err)
	}
	image := keys
	if more != "" {
		if image, err = item.Parse([]byte(more)); err != nil {
			panic(err)
		}
	}
	return sluice.Record{EventID: "event-" + id, EventName: sluice.Insert, Table: "orders", ShardID: "shard-1", Sequence: sluice.Sequence("1" + strings.Repeat("0", 20)), Keys: keys, New: image}
}

// run handles recs, one page, and returns the spans by name.
func (w *tracedRoutes) run(recs ...sluice.Record) map[string][]tracetest.SpanStub {
	w.t.Helper()
	w.handle(recs...)
	return w.spans()
}

func (w *tracedRoutes) handle(recs ...sluice.Record) {
	w.t.Helper()
	f := flow.Open(w.t.Context(), w, w.o)
	if _, err := f.Submit(w.t.Context(), recs...); err != nil && w.o.Policy != flow.Stop {
		w.t.Fatal(err)
	}
	if _, err := f.Close(w.t.Context()); err != nil && w.o.Policy != flow.Stop {
		w.t.Fatal(err)
	}
}

func (w *tracedRoutes) spans() map[string][]tracetest.SpanStub {
	w.t.Helper()
	if err := w.tracer.Flush(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	by := map[string][]tracetest.SpanStub{}
	for _, s := range w.exporter.GetSpans() {
		by[s.Name] = append(by[s.Name], s)
	}
	return by
}

// names are the names of spans with their numbers, such as "receive orders 1".
func names(by map[string][]tracetest.SpanStub) string {
	var all []string
	for name, spans := range by {
		all = append(all, fmt.Sprint(name, " ", len(spans)))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (w *tracedRoutes) want(by map[string][]tracetest.SpanStub, want string) {
	w.t.Helper()
	if got := names(by); got != want {
		w.t.Fatalf("spans\n%s\nwant\n%s", got, want)
	}
}

// child checks that each of the spans is a child of one of the parents, in its trace.
func (w *tracedRoutes) child(of, parents []tracetest.SpanStub) {
	w.t.Helper()
	for _, s := range of {
		if !slices.ContainsFunc(parents, func(p tracetest.SpanStub) bool {
			return p.SpanContext.TraceID() == s.SpanContext.TraceID() && p.SpanContext.SpanID() == s.Parent.SpanID()
		}) {
			w.t.Errorf("the parent of %q, %v, is no %q", s.Name, s.Parent.SpanID(), parents[0].Name)
		}
		if !s.SpanContext.IsSampled() || s.EndTime.Before(s.StartTime) {
			w.t.Errorf("span %q: sampled %v, from %v to %v", s.Name, s.SpanContext.IsSampled(), s.StartTime, s.EndTime)
		}
	}
}

func attr(s tracetest.SpanStub, name string) string {
	for _, kv := range s.Attributes {
		if string(kv.Key) == name {
			return kv.Value.String()
		}
	}
	return ""
}

// letters are dead letters with ids.
type letters struct {
	mu     sync.Mutex
	parked []string
	refuse int // times
}

func (l *letters) ID(rec *sluice.Record, route string) string {
	return "letter-" + rec.EventID + "-" + route
}

func (l *letters) Park(_ context.Context, rec *sluice.Record, f sluice.Failure) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse--; l.refuse >= 0 {
		return errors.New("disk full")
	}
	l.parked = append(l.parked, l.ID(rec, f.Route))
	return nil
}

// sink commits strings; it refuses those of bad.
func sink(bad func(string) error) *batch.Batcher[string] {
	return batch.New(func(ctx context.Context, all []string) []error {
		errs := make([]error, len(all))
		for i, one := range all {
			errs[i] = bad(one)
		}
		return errs
	}, nil, batch.Options{Sink: "bin", Linger: -1})
}

var _ sdk.SpanExporter = (*tracetest.InMemoryExporter)(nil)
var _ trace.Span = (*call)(nil)
