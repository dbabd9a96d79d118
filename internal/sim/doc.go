// Package sim is a simulation of one poller against the fake of the streams
// service (streamtest.Service). There is nothing in it but tests.
//
// A seed is a history: tables and options, writes, splits, replaced streams,
// misbehaviour of the service, the store and the handlers, and lives of the
// poller that end by an orderly stop, at a moment, or at the n-th thing that they
// do to the outside, before it has an effect or before they learn of it. In the
// end all faults are over, and the world must come to rest. In some seeds a route
// is then put on trial, for up to 15 minutes: the flow judges by such times.
//
//	draw      decisions that are hashes of the seed, whatever order goroutines run in
//	plan      what a seed means
//	history   the director: one goroutine that lets it happen, in virtual time
//	world     the tables
//	life      one process: a poller, its service client, store and handlers behind a gate
//	gate      nothing passes it once the life is over: so a crash is between any two effects
//	store     the store as a life sees it; every position goes by the checker
//	handler   what an application would do; every effect goes by the checker
//	sink      what handlers call: down, down for some items, or full
//	trial     what it takes to judge a route: outage, poison, too many calls
//	checker   what was written, done and stored, and the properties that must hold
//	workers   processes that run seeds, each with one processor
//	mutants   the poller broken on purpose, which the checker must notice
//
// What holds in every history (the prop constants of the checker): each change
// is handled, parked as a dead letter, or within a reported gap; those of one
// item one after another in their order; no position passes what is not settled;
// no record of a shard before its parent is settled and that is stored; a change
// is handled again only if it was in flight; when the faults are over everything
// is settled and stored, and the poller ready, within a bound; nothing is parked
// but what its handler gives up, poison, what is old and what is behind these;
// while some items fail, healthy ones are settled within 10 s; a route has no more
// calls than it is allowed, about as many as its sink takes, and few in an outage.
// A poller that says it is ready reads what was written, has stored what is
// settled, and has no route that fails.
//
// Which goroutine runs first is the scheduler's affair, and retries have jitter:
// a seed run twice gives the same decisions, and mostly the same end, but hardly
// ever the same trace. So the trace of a failing seed is kept when it fails, and
// a replay tries several times.
package sim
