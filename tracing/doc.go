// Package tracing makes OpenTelemetry traces of flows. A daemon uses it when the
// environment says so (see [On]); the function of cmd/sluice-lambda when it is built
// with the tag tracing.
//
// # Spans
//
// A trace is a page: the records of one request to the stream, of one Lambda
// invocation, or one message of a queue.
//
//	receive TABLE          the page, by its first record, until the flow has taken its records
//	└─ process TABLE       a record, from its Submit until it is settled
//	   ├─ route ROUTE      one call of a route: a retry is another span
//	   │  └─ commit SINK   a request to a sink, for the items of several records
//	   └─ park ROUTE       the parking, with the id of the dead letter
//
// A commit is a child of one call that waits for it, and links to its records:
// to 5,000 at most, rather to those that failed. Commits are those of package batch. A
// record links to the span of the traceparent that the change has written into the
// item, in Options.Parent. A record without a route has no span.
//
// # Sampling
//
// OTEL_TRACES_SAMPLER chooses pages. Of the others, the Tracer keeps ids and times
// alone. When a call or a commit fails, or a record cannot be decoded, it makes the
// spans of that record up to then, with their times, and all later ones. Spans that a
// handler made itself before the first failure are not among them. A call that a stop
// cuts off is kept with the event "cut off", and is no error.
//
// # Contents
//
// Spans have what the log has: positions, hashes of keys, and the text of errors. They
// have no data of items. The names of attributes are those of OpenTelemetry's semantic
// conventions, and sluice.… for others.
//
// # Cost
//
// The Tracer never waits for a collector. When the queue (OTEL_BSP_MAX_QUEUE_SIZE) is
// full, it drops spans and counts them in sluice_spans_total. Half of the queue is for
// spans with an error alone. When failures come faster than they are exported, that half
// is full at some time, too.
package tracing
