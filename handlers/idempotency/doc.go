// Package idempotency prevents handlers from repeating work: it remembers handled
// records in a table.
//
//	once := idempotency.Once("welcome mail", idempotency.Options{
//		Table: "idempotency",
//		Write: store.Write, // of sinks/dynamodb
//	})
//	r.Handle("user#INSERT", sendWelcome, router.Use(once), router.Timeout(20*time.Second))
//
// Use it for effects that cannot carry a key of their own. If you can, make the
// effect itself safe to repeat: a message with a dedupe key, a conditional write,
// or a counter of package rollup, whose marker is part of the effect.
//
// # Behaviour
//
// Before the handler runs, a row claims the record, on condition that no row
// exists. Afterwards the row says COMPLETED until it expires (Options.TTL). Then:
//
//   - A completed record is skipped.
//   - A record that is claimed elsewhere comes again when the claim has ended. Under Lambda it waits for that
//     end (Options.Wait), because the mapping's retries would be used up before.
//   - A handler that fails, even permanently, or panics, releases its claim, so that a retry or a redrive runs
//     it.
//   - A process that dies leaves a claim that ends with the handler's deadline, or after Options.InProgress.
//     Then another takes over.
//   - A Skip completes the record. With Options.Key it also completes later records with the key: let the
//     route select the records, not the handler.
//   - The rest of a [sluice.Remaining] is claimed anew, and completed at its end.
//
// # Limits
//
// The effect and the row are two writes. A process that dies after the effect and
// before COMPLETED repeats the effect when the claim has ended. So does a handler
// that continues after its deadline while another takes over. The effect happens
// at least once, rarely twice; not exactly once. If COMPLETED cannot be written,
// the flow retries that write, and not the handler, as long as the process lives.
//
// A record delivered after its row has expired is handled again: make TTL longer
// than records wait among the dead letters.
//
// # The table
//
// Rows have the form of AWS Lambda Powertools, so one table serves functions with
// either. The key is "id" (S). Attributes are "expiration" (N, seconds; the
// table's time to live), "in_progress_expiration" (N, milliseconds), "status"
// (INPROGRESS or COMPLETED), "data" (always "null": a handler has no result), and
// "validation" (a hash, with Options.Payload). A row in progress also has "claim",
// which identifies its owner. Ids are "<name>#<table>#<eventID>", or
// "<name>#<key>" with Options.Key. Tables with a sort key are not supported.
package idempotency
