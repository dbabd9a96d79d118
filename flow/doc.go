// Package flow runs the routes of records: order per item, concurrency across
// items and pages, limits, retries, and the watermark of what is durable. Every
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
// Submit gives it the next ordinal, waits until the window has room for it, and
// puts it at the end of its item's lane. The first record of each lane is
// ready; a worker takes it as soon as a concurrency slot is free. The Matcher
// says which routes it takes, and the worker calls their handlers one after
// another.
//
// A route that returned nil or [sluice.Skip] is done with the record. One that
// failed, or that has to wait for its gate, becomes a task of the record, and
// the worker goes on with the next route. A record with tasks that are not done
// keeps its lane but no worker and no slot. Its tasks wait in the queues of
// their routes until their backoff is over, their gate lets them through and a
// slot is free. When the last task is done, the record is settled, the next one
// of its lane is ready, and the watermark moves up over all that is settled
// without a gap.
//
// # What a failure leads to
//
// Under [Park], the daemon's policy, a [sluice.Permanent] failure, and a record
// that cannot be decoded or matched, goes to the dead letters at once. Any
// other is retried, with exponential backoff and full jitter, or as
// [sluice.RetryAfter] says. Whether it is parked at last depends on the [State]
// of its route: decide, in judge.go, is the one place that says so, and
// docs/decisions/0009-poison-or-outage.md gives the reasons.
//
//   - Works: a record is poison, and is parked, when its item has failed for 10
//     minutes and Route.Attempts times while the route succeeded for others, and
//     few other items fail.
//   - Overloaded: the handler says [sluice.Overloaded], or fewer calls at a time
//     turn out to fail less. As many run as the route takes, found by additive
//     increase and multiplicative decrease.
//   - Partial: more items fail than is plausible for poison. Those that fail are
//     retried alone, by a quarter of the slots at most; none is parked.
//   - Outage: nothing succeeds for 2 seconds, for three items at least. One
//     record at a time is sent to see whether the route works again, what was
//     never tried first; none is parked.
//   - Recovering: after an outage calls are let through step by step.
//
// A call that hangs does not hold a learned limit or a probe for ever: when none
// has begun for the larger of MaxBackoff and Timeout, one more starts.
//
// In every state a record is parked that becomes older than MaxAge, because the
// stream would lose it soon. One that only a limit of its route keeps waiting is
// called first, however old. A record that is that old already when it first
// fails is retried for half of the time that is left. With order [ByShard] nothing
// runs behind a record that fails: other flows of the Group must show that its
// route works.
//
// The age of a record counts from its creation; that of one which the stream
// cannot lose, because it is redriven, replayed or backfilled, from Submit.
//
// Under [Stop], Lambda's, nothing is retried. The first failure ends the batch
// there: records below it are still run, records above it are not started.
//
// Failing dead letters are tried again, with backoff, for as long as it takes
// (under Stop they stop the batch). Without dead letters a record that failed
// for good holds its lane, and is listed by Held.
//
// # Group commit
//
// Handlers find the flow's quorum.Scope in their context. One that waits in a
// sink gives its slot to another; when all that run wait in a sink, the sink
// knows that nobody is left to wait for.
//
// # Memory
//
// The window bounds records that are unsettled. A record that failed, and those
// behind it, count apart from the window, against HeldBytes: what waits for a
// retry must not keep others from being read. When either is full, or MaxAhead
// records are settled past the watermark, Submit waits and nothing is parked.
//
// Records share the memory of the page they came with. A page is free when its
// last record is settled. Records that wait for a retry, or behind such a one or
// a slow handler, do not keep it: when they are all that is left of it and less
// than half, they are copied out. A handler that runs keeps the page of its
// record. Who calls SubmitPage is told what has become free, so that many flows
// can share one bound; the window bounds each flow by itself.
//
// # Files
//
//	flow.go     Flow and Open
//	options.go  Options, Hooks and the interfaces a user implements
//	submit.go   Submit: taking records, waiting for room
//	page.go     Page: the memory that records share, and when it is free
//	window.go   what is unsettled; the watermark
//	lane.go     records of one item in order; the ready list
//	worker.go   goroutines that run records; concurrency slots
//	call.go     calling a handler and what follows from how it ended
//	outcome.go  what an error says; the package's errors
//	judge.go    decide: another try, or the dead letters
//	task.go     a route of a record that did not succeed at once
//	queue.go    tasks that wait: for their time, their gate, a slot
//	route.go    Group: what is known of each route
//	gate.go     when a call of a route may start; the route's state
//	outage.go   when nothing succeeds, and how a route is probed then
//	aimd.go     the concurrency that a route takes, learned
//	items.go    which items fail, and how many succeed
//	park.go     dead letters; items held behind a parked change
//	clock.go    the flow's one timer
//	stuck.go    the watch over handlers that do not return
//	held.go     the list of what waits
//	close.go    draining, stopping, cancelling
//
// # Locks
//
// Flow.closing, then Flow.mu, then gate.mu. Flow.reporting is taken alone. User
// code (handlers, hooks, dead letters, the logger) and quorum.Scope.Leave run
// without any of these but reporting and closing. A gate tells a flow that it
// may ask again without its own lock, and the flow asks under both: so a call is
// never let through for a flow that has no slot for it.
//
// A record that waits in a sink keeps its worker, so that there can be as many
// as the window has records. One that has nothing to do is kept for the next
// crowd (about 5 KB each), but ends within a quarter of StuckAfter when it is
// not needed. No goroutine runs while a flow has nothing to do for StuckAfter,
// and none after Close, unless a handler has not returned by then: see Idle.
package flow
