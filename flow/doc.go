// Package flow runs the routes of records: order per item, concurrency across
// items and pages, limits, retries, and the watermark of durable records. Every
// source feeds one Flow per shard or per Lambda batch.
//
//	f := flow.Open(ctx, router, flow.Options{DeadLetter: letters})
//	for page := range pages {
//		if _, err := f.Submit(ctx, page.Records...); err != nil {
//			break
//		}
//		checkpoint(f.Settled()) // the first so many records are durable
//	}
//	settled, err := f.Close(ctx)
//
// # The life of a record
//
// Submit gives the record the next ordinal, waits for room in the window, and
// appends it to its item's lane. The first record of each lane is ready. A worker
// takes it when a concurrency slot is free. The Matcher lists its routes, and the
// worker calls their handlers one after another.
//
// A route that returned nil or [sluice.Skip] is done with the record. A route that
// failed, or that must wait for its gate, becomes a task of the record. The worker
// continues with the next route. A record with unfinished tasks keeps its lane,
// but no worker and no slot. Its tasks wait in the queues of their routes for the
// end of the backoff, for the gate and for a slot. When the last task is done, the
// record is settled and the next record of its lane is ready. The watermark moves
// over all records that are settled without a gap.
//
// # Failures
//
// The daemon uses the policy [Park]. A record that cannot be decoded or matched,
// and a [sluice.Permanent] failure, go to the dead letters at once. Every other
// failure is retried, with exponential backoff and full jitter, or as
// [sluice.RetryAfter] says. Whether the record is finally parked depends on the
// [State] of its route. The function decide, in judge.go, makes every such
// decision; docs/decisions/0009-poison-or-outage.md gives the reasons.
//
//   - Works: a record is poison, and is parked, when its item has failed for 10
//     minutes and Route.Attempts times while the route succeeded for others, and
//     few other items fail.
//   - Overloaded: the handler returns [sluice.Overloaded], or a trial shows that
//     fewer calls at a time fail less. Additive increase and multiplicative
//     decrease find the number of calls that the route can take.
//   - Partial: more items fail than poison explains. Failing records are retried
//     alone, in a quarter of the slots at most. None is parked.
//   - Outage: nothing succeeds for 2 seconds, for at least three items. One
//     record at a time probes the route; records never tried go first. None is
//     parked.
//   - Recovering: after an outage the flow lets calls through step by step.
//
// A hanging call does not block a learned limit or a probe for ever. If no call
// has begun for the larger of MaxBackoff and Timeout, one more starts.
//
// In every state, a record older than MaxAge is parked, because the stream would
// soon lose it. A record that only a limit keeps waiting is called first, however
// old it is. A record that is already that old at its first failure is retried for
// half of the remaining time. With order [ByShard] nothing runs behind a failing
// record: other flows of the Group must show that its route works.
//
// The age of a record counts from its creation. A redriven, replayed or backfilled
// record cannot get lost in the stream: its age counts from Submit.
//
// An operator may pause or slow a route: see [Throttle].
//
// Lambda uses the policy [Stop]: nothing is retried. The first failure ends the
// batch at that record. Records below it still run; records above it do not start.
//
// A failing dead letter store is retried with backoff, without a limit. Under Stop
// it stops the batch. Without a dead letter store a record that failed for good
// holds its lane, and Held lists it.
//
// # Group commit
//
// The context of a handler carries the flow's quorum.Scope. A record that waits in
// a sink gives its slot to another record. When all running records wait in a
// sink, the sink knows that no other record will join its batch.
//
// # Memory
//
// The window bounds unsettled records. Failed records, and those behind them in
// their lanes, count against HeldBytes and not in the window: waiting for a retry
// must not stop the reading of other records. Submit waits when either is full, or
// when MaxAhead records are settled past the watermark. Nothing is parked then.
//
// Records share the memory of their page. A page is free when its last record is
// settled. Waiting records do not keep a page that is mostly settled: when only
// records remain that wait for a retry, or behind one or a slow handler, and they
// are less than half of the page, the flow copies them out. A running handler
// keeps the page of its record. Page.Freed reports freed memory, so that many
// flows can share one bound; the window bounds each flow alone.
//
// # Files
//
//	flow.go     Flow and Open
//	options.go  Options, Hooks and the interfaces that a user implements
//	submit.go   Submit: taking records, waiting for room
//	page.go     Page: the memory that records share, and when it is free
//	window.go   unsettled records; the watermark
//	lane.go     records of one item in order; the ready list
//	worker.go   goroutines that run records; concurrency slots
//	call.go     calling a handler and acting on its result
//	outcome.go  the meaning of an error; the package's errors
//	judge.go    decide: retry, or park
//	task.go     a route of a record that did not succeed at once
//	queue.go    tasks that wait for their time, their gate or a slot
//	route.go    Group: the state of each route
//	gate.go     when a call of a route may start; the route's state
//	throttle.go routes that an operator pauses or slows
//	outage.go   when nothing succeeds, and how a route is probed then
//	aimd.go     learning the concurrency of a route
//	items.go    which items fail, and how many succeed
//	park.go     dead letters; items held behind a parked change
//	clock.go    the flow's single timer
//	trace.go    Tracer, and where a worker calls it
//	stuck.go    the watch over handlers that do not return
//	held.go     the list of waiting items
//	close.go    draining, stopping, cancelling
//
// # Locks
//
// Flow.closing or Group.throttling, then Flow.mu, then gate.mu or Group.mu.
// Flow.reporting is taken alone. User code (handlers, hooks, dead letters, the logger)
// and quorum.Scope.Leave run without any lock except reporting and closing. A gate
// wakes a flow without holding its own lock. The flow then asks for a call under both
// locks: a call is never let through for a flow without a free slot.
//
// A record that waits in a sink keeps its worker, so there can be as many workers
// as the window has records. An idle worker (about 5 KB) is kept for the next
// burst and ends within a quarter of StuckAfter. A flow that is idle for
// StuckAfter runs no goroutine, and neither does a closed flow unless a handler
// has not returned: see Idle.
package flow
