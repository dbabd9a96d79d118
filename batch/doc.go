// Package batch is group commit behind a plain call: it turns many concurrent
// calls for one item each into few requests for many, and gives every caller
// its own result.
//
// # Writing a sink
//
// A service that takes many items in one request needs one function: it makes
// a slice of items durable and says what became of each. [New] makes a
// [Batcher] of it, and [Batcher.Do] is what a handler calls. When Do returns
// nil the item is durable, so that the handler's nil is true as well:
//
//	type Sink struct{ b *batch.Batcher[Document] }
//
//	func (s *Sink) Index(ctx context.Context, d Document) error { return s.b.Do(ctx, d) }
//
// The function is called with 1 to MaxItems items of up to MaxBytes together,
// several times at once, and owns what happens within a request: matching
// answers to items, retrying those that the service asked to send again until
// its context ends, and marking with sluice.Permanent what will never succeed.
// It must not return before it knows the result of each item.
//
// # When a batch is sent
//
// A full batch is sent at once. Any other is due when nobody is left who could
// still join it, which the flows that run the handlers know: a lone record
// waits for nothing, and a hundred records fill their requests without a tuned
// delay. Callers that no flow runs (plain goroutines, tests), and handlers
// that wait for something else, are covered by Linger. A due batch stays open
// until one of the InFlight slots is free, so that batches grow while the
// service is slow. There are fewer slots while the service refuses items for
// load (sluice.Overloaded), so that it gets fewer and fuller requests.
//
// The first caller that notices sends for all on its own goroutine. There is
// nothing to start, to flush or to close, and nothing is left behind in a
// Lambda that is frozen between invocations.
package batch
