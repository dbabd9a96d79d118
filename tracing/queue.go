package tracing

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sluicehq/sluice/metrics"
)

var spans = metrics.New(metrics.Metric{Name: "sluice_spans_total", Help: "Spans of traces: exported, failed, dropped because the queue was full.", Labels: []string{"outcome"}})

// queue hands spans to a batch processor of the SDK, which never waits. The queue
// bounds the spans that are not exported yet, and counts those that it drops. The SDK
// counts none. Half of the queue is for errors alone.
type queue struct {
	sdk.SpanProcessor
	limit   int64
	pending atomic.Int64
	stopped atomic.Bool
	counted *metrics.Series
}

func newQueue(exporter sdk.SpanExporter, meter metrics.Meter) *queue {
	limit, err := strconv.Atoi(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE"))
	if err != nil || limit <= 0 {
		limit = sdk.DefaultMaxQueueSize
	}
	q := &queue{limit: int64(limit), counted: spans.Of(meter)}
	for _, outcome := range []string{"exported", "failed", "dropped"} {
		q.counted.Bind(outcome)
	}
	q.SpanProcessor = sdk.NewBatchSpanProcessor(&exported{exporter, q}, sdk.WithMaxQueueSize(limit))
	return q
}

func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	limit := q.limit
	if s.Status().Code != codes.Error {
		limit = (limit + 1) / 2
	}
	if q.pending.Add(1) > limit || q.stopped.Load() {
		q.pending.Add(-1)
		q.counted.Add(1, "dropped")
		return
	}
	q.SpanProcessor.OnEnd(s)
}

func (q *queue) Shutdown(ctx context.Context) error {
	q.stopped.Store(true)
	return q.SpanProcessor.Shutdown(ctx)
}

// exported counts the spans that leave the queue.
type exported struct {
	sdk.SpanExporter
	queue *queue
}

func (e *exported) ExportSpans(ctx context.Context, all []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, all)
	outcome := "exported"
	if err != nil {
		outcome = "failed"
	}
	e.queue.pending.Add(-int64(len(all)))
	e.queue.counted.Add(float64(len(all)), outcome)
	return err
}
