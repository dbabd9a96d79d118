package tracing

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicehq/sluice"
)

// links returns a link to the span in which the change of rec was written. A change
// that left the traceparent of an earlier one in the item has none.
func (t *Tracer) links(rec *sluice.Record) []trace.Link {
	v, ok := rec.New.Lookup(t.parent)
	if !ok {
		return nil
	}
	if old, ok := rec.Old.Lookup(t.parent); ok && old.Equal(v) {
		return nil
	}
	carrier := propagation.MapCarrier{"traceparent": v.Str()}
	sc := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
	if !sc.IsValid() {
		return nil
	}
	return []trace.Link{{SpanContext: sc}}
}

// withXRay returns ctx with the span of X-Ray in which Lambda has invoked the
// function, unless ctx leads to a span already.
func withXRay(ctx context.Context) context.Context {
	header, ok := ctx.Value("x-amzn-trace-id").(string) // the key of aws-lambda-go
	if !ok || trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	if sc := xray(header); sc.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	return ctx
}

// xray reads Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1.
func xray(header string) trace.SpanContext {
	c := trace.SpanContextConfig{Remote: true}
	for part := range strings.SplitSeq(header, ";") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name {
		case "Root":
			if id := strings.ReplaceAll(strings.TrimPrefix(value, "1-"), "-", ""); len(id) == 32 {
				c.TraceID, _ = trace.TraceIDFromHex(id)
			}
		case "Parent":
			c.SpanID, _ = trace.SpanIDFromHex(value)
		case "Sampled":
			if value == "1" {
				c.TraceFlags = trace.FlagsSampled
			}
		}
	}
	return trace.NewSpanContext(c)
}
