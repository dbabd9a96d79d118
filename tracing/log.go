package tracing

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// Logs returns a handler that adds the ids of the trace and the span to which the
// context of a line leads: trace_id, span_id.
func Logs(h slog.Handler) slog.Handler { return logs{h} }

type logs struct{ slog.Handler }

func (h logs) Handle(ctx context.Context, r slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h logs) WithAttrs(attrs []slog.Attr) slog.Handler { return logs{h.Handler.WithAttrs(attrs)} }
func (h logs) WithGroup(name string) slog.Handler       { return logs{h.Handler.WithGroup(name)} }

// Exemplar returns the labels of an exemplar for the span to which ctx leads; nil if
// it is not exported.
func Exemplar(ctx context.Context) map[string]string {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsSampled() {
		return nil
	}
	return map[string]string{"trace_id": sc.TraceID().String(), "span_id": sc.SpanID().String()}
}
