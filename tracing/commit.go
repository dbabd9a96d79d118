package tracing

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicehq/sluice/internal/spanattr"
)

// commit is a request to a sink.
type commit struct {
	tracer *Tracer
	sink   string
	start  time.Time
	calls  []*call // of each item; nil: of no traced record

	mu   sync.Mutex
	span trace.Span // nil: not kept yet
	said []attribute.KeyValue
}

// Commit implements flow.Tracer.
func (t *Tracer) Commit(ctx context.Context, sink string, callers []context.Context) (context.Context, func([]error)) {
	c := &commit{tracer: t, sink: sink, start: time.Now(), calls: make([]*call, len(callers))}
	var kept, last *call
	for i, of := range callers {
		if of == nil {
			continue
		}
		c.calls[i], _ = of.Value(callKey{}).(*call)
		if one := c.calls[i]; one != nil {
			last = one
			if kept == nil && one.record.kept.Load() {
				kept = one
			}
		}
	}
	switch {
	case last == nil:
		return ctx, func([]error) {}
	case kept != nil:
		c.make(kept)
		ctx = trace.ContextWithSpan(ctx, c.span)
	default:
		ctx = trace.ContextWithSpanContext(ctx, last.SpanContext())
	}
	return spanattr.With(ctx, c.set), c.end
}

// make makes the span, as a child of parent's.
func (c *commit) make(parent *call) {
	var links []trace.Link
	var last *record
	seen := map[*record]bool{}
	for _, of := range c.calls {
		if of == nil || of.record == last || seen[of.record] {
			continue
		}
		last = of.record
		seen[last] = true
		links = append(links, trace.Link{SpanContext: last.context()})
	}
	in := parent.record.page.within(parent.id, true)
	c.span = c.tracer.span(in, in.WithSpanID(newSpanID()), "commit "+c.sink, trace.SpanKindClient, c.start, links...)
}

// set is a spanattr.Set.
func (c *commit) set(name string, values ...string) {
	kv := attribute.StringSlice(name, values)
	if len(values) == 1 && name != string(semconv.AWSDynamoDBTableNamesKey) {
		kv = attribute.String(name, values[0])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = append(c.said, kv)
}

// end ends the commit. errs has an error for each item, or is nil.
func (c *commit) end(errs []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	failed, first := 0, 0
	for i, err := range errs {
		if err != nil {
			if failed++; failed == 1 {
				first = i
			}
		}
	}
	if c.span == nil && failed > 0 {
		for i, of := range c.calls {
			if of != nil && i < len(errs) && errs[i] != nil {
				c.make(of)
				break
			}
		}
	}
	if c.span == nil {
		return
	}
	size := semconv.DBOperationBatchSize(len(c.calls))
	for _, kv := range c.said {
		if kv.Key == semconv.MessagingSystemKey {
			size = semconv.MessagingBatchMessageCount(len(c.calls))
		}
	}
	c.span.SetAttributes(c.said...)
	c.span.SetAttributes(size, attribute.String("sluice.sink", c.sink))
	if failed > 0 {
		c.span.SetAttributes(attribute.Int("sluice.failed", failed), semconv.ErrorTypeKey.String(fmt.Sprintf("%T", errs[first])))
		c.span.SetStatus(codes.Error, textOf(errs[first]))
	}
	c.span.End()
}
