package tracing

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
)

// Tracer is a flow.Tracer. It is safe for concurrent use.
type Tracer struct {
	heads      *sdk.TracerProvider
	queue      *queue
	head, kept trace.Tracer
	parent     string
}

var _ flow.Tracer = (*Tracer)(nil)

// Flush exports the ended spans, if there are any.
func (t *Tracer) Flush(ctx context.Context) error {
	if t.queue.pending.Load() == 0 {
		return nil
	}
	return reason(t.queue.ForceFlush(ctx))
}

// Stop exports the ended spans, until ctx ends. Later spans are dropped.
func (t *Tracer) Stop(ctx context.Context) error { return reason(t.queue.Shutdown(ctx)) }

// span makes a span that is kept, with the ids of sc.
func (t *Tracer) span(parent, sc trace.SpanContext, name string, kind trace.SpanKind, start time.Time, links ...trace.Link) trace.Span {
	ctx := context.WithValue(trace.ContextWithSpanContext(context.Background(), parent), idsKey{}, sc)
	_, span := t.kept.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(start), trace.WithLinks(links...))
	return span
}

// page is the trace of the records of one Submit.
type page struct {
	tracer  *Tracer
	parent  trace.SpanContext
	sc      trace.SpanContext
	sampled bool
	start   time.Time
	records int
	of      source // of the first record

	mu   sync.Mutex
	span trace.Span // nil: not made
	end  time.Time  // zero: Submit runs
	made bool       // span was made
}

// source is where the records of a page come from. Its strings are copies, because
// those of a record share the memory of its page.
type source struct {
	table, shard string
	messages     bool
}

func (s source) attributes() []attribute.KeyValue {
	if s.messages {
		return []attribute.KeyValue{semconv.MessagingSystemAWSSQS, semconv.MessagingDestinationName(s.table)}
	}
	all := []attribute.KeyValue{semconv.MessagingSystemKey.String("aws_dynamodb_streams"), semconv.AWSDynamoDBTableNames(s.table)}
	if s.shard != "" {
		all = append(all, attribute.String("sluice.shard", s.shard))
	}
	return all
}

func sourceOf(rec *sluice.Record) source {
	return source{copied(rec.Table), copied(rec.ShardID), rec.EventName == sluice.Delivery}
}

// Page implements flow.Tracer.
func (t *Tracer) Page(ctx context.Context, records []sluice.Record) flow.PageTrace {
	p := &page{tracer: t, start: time.Now(), records: len(records), of: sourceOf(&records[0])}
	ctx = withXRay(ctx)
	p.parent = trace.SpanContextFromContext(ctx)
	_, span := t.head.Start(ctx, p.name(), trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(p.start))
	p.sc, p.sampled = span.SpanContext(), span.SpanContext().IsSampled()
	if p.sampled {
		p.span, p.made = span, true
	}
	return p
}

func (p *page) name() string { return "receive " + p.of.table }

// Submitted implements flow.PageTrace.
func (p *page) Submitted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = time.Now()
	p.write()
}

// keep has the page's span exported even if the page was not chosen.
func (p *page) keep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.made {
		p.made = true
		p.span = p.tracer.span(p.parent, p.sc, p.name(), trace.SpanKindClient, p.start)
		if !p.end.IsZero() {
			p.write()
		}
	}
}

// write ends the span, if there is one. mu is held.
func (p *page) write() {
	if p.span == nil {
		return
	}
	p.span.SetAttributes(p.of.attributes()...)
	p.span.SetAttributes(semconv.MessagingOperationTypeReceive, semconv.MessagingOperationName("receive"), semconv.MessagingBatchMessageCount(p.records))
	p.span.End(trace.WithTimestamp(p.end))
	p.span = nil
}

// Record implements flow.PageTrace.
func (p *page) Record(submitted time.Time) flow.RecordTrace {
	return &record{page: p, start: submitted, id: newSpanID()}
}

// within returns the context of a span of p's trace, as a parent.
func (p *page) within(id trace.SpanID, kept bool) trace.SpanContext {
	c := p.sc.WithSpanID(id).WithRemote(false)
	if kept {
		return c.WithTraceFlags(c.TraceFlags() | trace.FlagsSampled)
	}
	return c
}
