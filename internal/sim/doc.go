// Package sim is a simulation of one poller against the fake of the streams
// service (streamtest.Service). It has only tests.
//
// A seed is a history: tables and options, writes, splits, replaced streams, and
// misbehaviour of the service, the store and the handlers. The poller lives
// several lives. A life ends by an orderly stop, at a moment, or at its n-th
// effect on the outside: before the effect happens, or before the poller learns of
// it. In the end all faults are over, and the world must come to rest. In some
// seeds a route is then put on trial, for up to 15 minutes, because the flow
// judges over such times.
//
//	draw      decisions that are hashes of the seed, whatever order goroutines run in
//	plan      the meaning of a seed
//	history   the director: one goroutine that runs it, in virtual time
//	world     the tables
//	life      one process: a poller, its service client, store and handlers behind a gate
//	gate      closed once the life is over: so a crash is between any two effects
//	store     the store as a life sees it; every position goes by the checker
//	handler   the application's work; every effect goes by the checker
//	sink      the target of handlers: down, down for some items, or full
//	trial     the conditions to judge a route: outage, poison, too many calls
//	checker   the writes, effects and positions, and the properties that must hold
//	workers   processes that run seeds, each with one processor
//	mutants   the poller broken on purpose, which the checker must notice
//
// These properties hold in every history (the prop constants of the checker):
//
//   - Each change is handled, parked as a dead letter, or within a reported gap. Changes of one item are handled in their order.
//   - No position passes an unsettled record.
//   - No record of a shard is handled before its parent is settled and stored as such.
//   - A change is handled again only if it was in flight.
//   - When the faults are over, everything is settled and stored, and the poller is ready, within a bound.
//   - Only these records are parked: permanent failures, poison, old records, and records behind these.
//   - While some items fail, healthy ones are settled within 10 s.
//   - A route has no more calls than allowed, about as many as its sink takes, and few in an outage.
//   - A ready poller reads every due shard, has stored every watermark, and has no failing route.
//
// The simulation of a fleet is in state/dynamostate, because it reads that package's
// rows. Its mutants are here.
//
// The scheduler decides which goroutine runs first, and retries have jitter. A
// seed run twice makes the same decisions, and mostly ends the same way, but
// hardly ever with the same trace. So the trace of a failing seed is kept, and a
// replay tries several times.
package sim
