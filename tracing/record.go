package tracing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/keyhash"
)

// record is the trace of one record. Other goroutines than the record's use only
// kept, sank and the contexts of calls.
type record struct {
	page  *page
	start time.Time
	id    trace.SpanID
	kept  atomic.Bool // its spans are exported
	sank  atomic.Bool // a commit of its items failed

	about   *about // set once it is kept
	trouble string // why it failed; empty: it did not
	open    *call
	ended   *call // calls that ended before it was kept, the last first
}

// about is what the span says of the record. It keeps nothing of the record's page.
type about struct {
	name  string
	attrs []attribute.KeyValue
	links []trace.Link
}

// call is a call of a route, or a parking. It is the context of the handler, and while
// its record is not kept its current span.
type call struct {
	context.Context
	noop.Span
	record  *record
	id      trace.SpanID
	start   time.Time
	took    time.Duration
	span    trace.Span // nil: not kept
	route   string
	attempt int // 0: a parking
	result  flow.Result
	letter  string
	cut     bool // by the end of its flow
	trouble *trouble
	before  *call // that ended before it
}

// trouble is the error of a call.
type trouble struct{ text, kind string }

type callKey struct{}

// Value leads commits to the call.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// SpanContext is that of the call's span, which is exported if the record is kept.
func (c *call) SpanContext() trace.SpanContext {
	return c.record.page.within(c.id, c.record.kept.Load())
}

func (r *record) context() trace.SpanContext { return r.page.within(r.id, r.kept.Load()) }

// Call implements flow.RecordTrace.
func (r *record) Call(ctx context.Context, rec *sluice.Record, route *sluice.Route, began time.Time, attempt int) context.Context {
	c := r.begin(began)
	c.route, c.attempt = valid(route.Name), attempt
	return r.enter(ctx, rec, c)
}

// Park implements flow.RecordTrace.
func (r *record) Park(ctx context.Context, rec *sluice.Record, route, letter string) context.Context {
	c := r.begin(time.Now())
	c.route, c.letter = valid(route), valid(letter)
	return r.enter(ctx, rec, c)
}

func (r *record) begin(at time.Time) *call {
	c := &call{record: r, id: newSpanID(), start: at}
	r.open = c
	return c
}

func (r *record) enter(ctx context.Context, rec *sluice.Record, c *call) context.Context {
	if r.page.sampled || c.attempt == 0 {
		r.keep(rec)
	}
	if !r.kept.Load() {
		c.Context = trace.ContextWithSpan(ctx, c)
		return c
	}
	c.span = c.make()
	c.Context = trace.ContextWithSpan(ctx, c.span)
	return c
}

// make makes the span of c.
func (c *call) make() trace.Span {
	r := c.record
	name, kind := "route "+c.route, trace.SpanKindInternal
	if c.attempt == 0 {
		name = strings.TrimSpace("park " + c.route) // without a route for all routes
	}
	span := r.page.tracer.span(r.context(), c.SpanContext(), name, kind, c.start)
	span.SetAttributes(attribute.String("sluice.route", c.route))
	if c.attempt > 0 {
		span.SetAttributes(attribute.Int("sluice.attempt", c.attempt))
	} else if c.letter != "" {
		span.SetAttributes(attribute.String("sluice.dead_letter", c.letter))
	}
	return span
}

// write ends the span of c.
func (c *call) write() {
	if c.span == nil {
		c.span = c.make()
	}
	c.span.SetAttributes(attribute.String("sluice.outcome", c.result.String()))
	if c.cut {
		c.span.AddEvent("cut off")
	}
	if c.trouble != nil {
		c.span.SetAttributes(semconv.ErrorTypeKey.String(c.trouble.kind))
		c.span.SetStatus(codes.Error, c.trouble.text)
	}
	c.span.End(trace.WithTimestamp(c.start.Add(c.took)))
}

// EndCall implements flow.RecordTrace.
func (r *record) EndCall(rec *sluice.Record, result flow.Result, took time.Duration, err error) {
	c := r.open
	r.open = nil
	failed := result != flow.Done && result != flow.Skipped
	cut := failed && c != nil && cutOff(c.Context, err)
	if failed && !cut {
		r.trouble = textOf(err)
	}
	if failed || r.sank.Load() {
		r.keep(rec)
	}
	if c == nil {
		return
	}
	c.took, c.result, c.cut = took, result, cut
	if c.attempt == 0 {
		c.took = time.Since(c.start)
	}
	if failed && !cut && (c.attempt > 0 || result != flow.Parked) { // else it was parked well
		c.trouble = &trouble{r.trouble, fmt.Sprintf("%T", err)}
	}
	if r.kept.Load() {
		c.write()
		return
	}
	c.before, r.ended = r.ended, c
}

// keep has the spans of r exported: those of the past now.
func (r *record) keep(rec *sluice.Record) {
	if r.kept.Load() {
		return
	}
	of := sourceOf(rec)
	r.about = &about{"process " + of.table, of.attributes(), r.page.tracer.links(rec)}
	r.about.attrs = append(r.about.attrs,
		semconv.MessagingOperationTypeProcess, semconv.MessagingOperationName("process"), semconv.MessagingMessageID(copied(rec.EventID)),
		attribute.String("sluice.event", copied(string(rec.EventName))), attribute.String("sluice.origin", rec.Origin.String()))
	if rec.Sequence != "" {
		r.about.attrs = append(r.about.attrs, attribute.String("sluice.sequence", copied(string(rec.Sequence))))
	}
	if rec.Keys.Exists() {
		r.about.attrs = append(r.about.attrs, attribute.String("sluice.key", keyhash.Item(rec.Keys)))
	}
	r.kept.Store(true)
	r.page.keep()
	for c := r.ended; c != nil; c = c.before {
		c.write()
	}
	r.ended = nil
}

// End implements flow.RecordTrace.
func (r *record) End(settled bool) {
	if !r.kept.Load() {
		return
	}
	p := r.page
	span := p.tracer.span(p.within(p.sc.SpanID(), true), r.context(), r.about.name, trace.SpanKindConsumer, r.start, r.about.links...)
	span.SetAttributes(append(r.about.attrs, attribute.Bool("sluice.settled", settled))...)
	if r.trouble != "" {
		span.SetStatus(codes.Error, r.trouble)
	}
	span.End()
}

// maxText bounds the text of an error in a span.
const maxText = 1000

// textOf is the text of an error of a handler, which may panic.
func textOf(err error) (text string) {
	defer func() {
		if recover() != nil || text == "" {
			text = "failed"
		}
	}()
	text = err.Error()
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return valid(text)
}

// valid makes s a text that OTLP can have. Another one would lose its whole export.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// copied is a valid copy of s, which shares the memory of a page.
func copied(s string) string { return strings.Clone(valid(s)) }

// cutOff reports whether err is the end of ctx, which says nothing of the record.
func cutOff(ctx context.Context, err error) (cut bool) {
	defer func() { _ = recover() }() // of the error's methods
	if ctx.Err() == nil {
		return false
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Cause(ctx))
}
