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
// failed, or that has to wait for its limits, becomes a task of the record, and
// the worker goes on with the next route. A record with tasks that are not done
// keeps its lane but no worker and no slot: it waits until a task is due (its
// backoff is over, or its route's gate lets it through) and is then ready
// again. When the last task is done, the record is settled, the next one of its
// lane is ready, and the watermark moves up over all that is settled without a
// gap.
//
// # What a failure leads to
//
// Under [Park], the daemon's policy, a [sluice.Permanent] failure, and a record
// that cannot be decoded or matched, goes to the dead letters at once. Any
// other is retried, with exponential backoff and full jitter, or as
// [sluice.RetryAfter] says. It counts against the record only if the route has
// succeeded for another record since the previous failure; after
// Route.Attempts of those the record is poison and is parked. When a route
// fails five times in a row, for two items at least and with no success in
// between, that is an outage and no poison: its breaker opens, and one record
// at a time, in turn, is sent to see whether it works again. Nothing is parked
// then, but for what is older than MaxAge: the stream would lose it soon (nor is
// a RetryAfter waited for longer than that). Skips
// and permanent failures say nothing about the route. A single item that keeps
// failing while there is no other traffic is neither poison nor an outage: it
// is retried until others succeed or until it is too old. So is one with order
// [ByShard], behind which nothing of its flow runs: other flows of the Group
// must show that its route works.
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
//	task.go     a route of a record that did not succeed at once
//	limit.go    Group: concurrency, rate and order of waiting per route
//	breaker.go  poison or outage
//	park.go     dead letters; items held behind a parked change
//	retry.go    backoff; the flow's one timer
//	stuck.go    the watch over handlers that do not return
//	held.go     the list of what waits
//	close.go    draining, stopping, cancelling
//
// # Locks
//
// Flow.closing, then Flow.mu, then gate.mu. Flow.reporting is taken alone. User
// code (handlers, hooks, dead letters, the logger) and quorum.Scope.Leave run
// without any of these but reporting and closing. A gate that lets a record
// through takes it out of its queue first and then asks the record's flow, each
// under its own lock: in between the record is nowhere, which is why
// startPermitted looks at it anew and may refuse.
//
// A record that waits in a sink keeps its worker, so that there can be as many
// as the window has records. One that has nothing to do is kept for the next
// crowd (about 5 KB each), but ends within a quarter of StuckAfter when it is
// not needed. No goroutine runs while a flow has nothing to do for StuckAfter,
// and none after Close, unless a handler has not returned by then: see Idle.
package flow
