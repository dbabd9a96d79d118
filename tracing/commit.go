package tracing

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// commit is a request to a sink.
type commit struct {
	tracer *Tracer
	sink   string
	start  time.Time
	calls  []*call    // of each item; nil: of no traced record
	span   trace.Span // nil: not kept yet
}

// Commit implements flow.Tracer.
func (t *Tracer) Commit(ctx context.Context, sink string, callers []context.Context) (context.Context, func([]error)) {
	c := &commit{tracer: t, sink: valid(sink), start: time.Now(), calls: make([]*call, len(callers))}
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
		return trace.ContextWithSpan(ctx, c.span), c.end
	default:
		return trace.ContextWithSpanContext(ctx, last.SpanContext()), c.end
	}
}

// make makes the span, as a child of parent's.
func (c *commit) make(parent *call) {
	in := parent.record.page.within(parent.id, true)
	c.span = c.tracer.span(in, in.WithSpanID(newSpanID()), "commit "+c.sink, trace.SpanKindClient, c.start)
}

// end ends the commit. errs has an error for each item, or is nil.
func (c *commit) end(errs []error) {
	failed := 0
	var first error
	for i, err := range errs {
		if err == nil {
			continue
		}
		if failed++; failed == 1 {
			first = err
		}
		if of := c.calls[i]; of != nil {
			of.record.sank.Store(true) // its call ends later
			if c.span == nil {
				c.make(of)
			}
		}
	}
	if c.span == nil {
		return
	}
	c.link(false)
	c.link(true) // last, because a full span drops its first links
	c.span.SetAttributes(attribute.String("sluice.sink", c.sink), attribute.Int("sluice.items", len(c.calls)))
	if failed > 0 {
		c.span.SetAttributes(attribute.Int("sluice.failed", failed), semconv.ErrorTypeKey.String(fmt.Sprintf("%T", first)))
		c.span.SetStatus(codes.Error, textOf(first))
	}
	c.span.End()
}

// link links to the records whose commits failed, or to the other records.
func (c *commit) link(sank bool) {
	seen := map[*record]bool{}
	for _, of := range c.calls {
		if of != nil && of.record.sank.Load() == sank && !seen[of.record] {
			seen[of.record] = true
			c.span.AddLink(trace.Link{SpanContext: of.record.context()})
		}
	}
}
