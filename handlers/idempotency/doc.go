// Package idempotency keeps handlers from doing a thing again that they have
// done: it remembers in a table which records were handled.
//
//	once := idempotency.Once("welcome mail", idempotency.Options{
//		Table: "idempotency",
//		Write: store.Write, // of sinks/dynamodb
//	})
//	r.Handle("user#INSERT", sendWelcome, router.Use(once), router.Timeout(20*time.Second))
//
// It is for effects that cannot carry a key of their own. What can be made safe
// to repeat is better made so: a message with a dedupe key, a conditional write,
// a counter of package rollup, whose marker is a part of the effect itself.
//
// # What happens
//
// Before the handler runs, a row claims the record, on condition that there is
// none; afterwards it says COMPLETED until it expires (Options.TTL). Then
//
//   - a record that is done already is skipped;
//   - one that is claimed elsewhere comes again when the claim has ended; under
//     Lambda it waits for that end (Options.Wait), since a mapping's retries would
//     be used up before;
//   - a handler that fails, for good too, or panics, gives its claim up, so that
//     a retry or a redrive runs it;
//   - a process that dies leaves a claim that ends with the handler's deadline,
//     or after Options.InProgress: then another takes over;
//   - a Skip is done (with Options.Key also for later records of the key: let
//     the route choose the records, and not the handler); what a [sluice.Remaining] leaves is claimed anew, and done
//     when it is through.
//
// # What it cannot do
//
// The effect and the row are two writes. A process that dies after the effect
// and before COMPLETED repeats the effect when the claim has ended. So does a
// handler that goes on after its deadline while another takes over. It is at
// least once, seldom twice; not exactly once. When COMPLETED cannot be written
// the flow tries that again, and not the handler, as long as the process lives.
//
// A record that is delivered after its row has expired is handled again: make
// TTL longer than records wait among the dead letters.
//
// # The table
//
// Rows are those of AWS Lambda Powertools, so that one table serves functions
// that use either: the key "id" (S), "expiration" (N, seconds; the table's time
// to live), "in_progress_expiration" (N, milliseconds), "status" (INPROGRESS or
// COMPLETED), "data" (always "null": a handler has no result), "validation" (a
// hash, with Options.Payload). While a row is in progress it also has "claim",
// which tells whose it is. Ids are "<name>#<table>#<eventID>", or "<name>#<key>"
// with Options.Key. Tables with a sort key are not supported.
package idempotency
