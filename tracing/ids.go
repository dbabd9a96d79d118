package tracing

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"
)

// givenIDs gives a span the ids that its context has for it.
type givenIDs struct{}

type idsKey struct{}

func (givenIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if sc, ok := ctx.Value(idsKey{}).(trace.SpanContext); ok {
		return sc.TraceID(), sc.SpanID()
	}
	var id trace.TraceID
	binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], 1+rand.Uint64N(1<<64-1))
	return id, newSpanID()
}

func (g givenIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if sc, ok := ctx.Value(idsKey{}).(trace.SpanContext); ok {
		return sc.SpanID()
	}
	return newSpanID()
}

func newSpanID() (id trace.SpanID) {
	binary.NativeEndian.PutUint64(id[:], 1+rand.Uint64N(1<<64-1)) // zero is none
	return id
}
