// Package batch is group commit behind a plain call. It turns many concurrent
// calls for one item into few requests for many, and gives every caller its own
// result.
//
// # Writing a sink
//
// A service that takes many items per request needs one function: it makes a slice
// of items durable and returns one result each. [New] makes a [Batcher] from it,
// and a handler calls [Batcher.Do]. When Do returns nil, the item is durable, so
// the handler may return nil too:
//
//	type Sink struct{ b *batch.Batcher[Document] }
//
//	func (s *Sink) Index(ctx context.Context, d Document) error { return s.b.Do(ctx, d) }
//
// The function is called with 1 to MaxItems items of up to MaxBytes together,
// several times at once. It matches results to items, and retries items that the
// service asks to send again, until its context ends. It marks permanent failures
// with sluice.Permanent. It must not return before it knows the result of each
// item.
//
// # When a batch is sent
//
// A full batch is sent at once. Another batch is due when no running handler can
// still join it; the flows know that. So a lone record waits for nothing, and a
// hundred records fill their requests without a tuned delay. Linger covers callers
// outside a flow (plain goroutines, tests), and handlers that wait for something
// else. A due batch stays open until one of the InFlight slots is free, so batches
// grow while the service is slow. While the service refuses items for load
// (sluice.Overloaded), there are fewer slots, and requests are fewer and fuller.
//
// The first caller that notices sends the batch on its own goroutine. Nothing
// needs a start, a flush or a close. Nothing stays behind in a Lambda function
// that is frozen between invocations.
package batch
