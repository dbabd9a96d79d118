// Package snapshot reads a table by Scan: its items as they are now, and not
// their changes. A [Source] hands them to the routes of a router, for a
// backfill; [Scan] hands them to whoever asks, for a comparison.
//
//	r := router.New()
//	r.Handle("order#INSERT order#MODIFY order#REMOVE order#SNAPSHOT", index.Handle)
//	s, err := snapshot.New(cfg, r, snapshot.Options{Table: "orders", Store: store})
//	…
//	err = s.Run(ctx)
//
// # Records
//
// An item is a record with the event name SNAPSHOT, the Origin Backfilled, Keys
// and New. Only routes that write SNAPSHOT out receive it: `order#*` does not
// stand for it, so that nobody is called about an order of last year. Its
// EventID follows from the table and the key alone, so that what handlers keep
// by it is the same whenever the item is read.
//
// # What is guaranteed
//
// Every item that is in the table from the beginning of the backfill to its end
// is handed to its routes at least once, and is settled or among the dead
// letters before the backfill is finished. A process that is killed goes on
// behind the last page of which everything was settled; what was read of later
// pages comes again. An item that is written meanwhile comes as it was before
// or after, or not at all if it is new.
//
// # Beside live reading
//
// The table's stream has to be read from a position before the backfill: then
// whatever changes after an item was read comes by the stream. So the reading
// of the stream begins first, and Run refuses to begin while the store has no
// start of the table's stream for the application. An item of the backfill and
// a change of the same item are handled in any order. The target has to tell
// which of them is newer, by a version of the item: a projection does, and
// refuses SNAPSHOT records when it has none.
//
// The table is read with strong consistency. An eventually consistent read may
// return an item as it was before a change that was made just before the
// reading of the stream began: that change is in no stream record that is read
// later, and would be missing for good. Who is sure that the stream has been
// read since long before (minutes are plenty) may set ScanOptions.Eventual,
// which takes half of the units.
//
// # Read capacity
//
// A backfill takes a share of the table's read capacity, by what the service
// says that each call has consumed, all segments together: a quarter of what is
// provisioned, or 1,000 units a second of a table on demand. A call that is
// throttled is tried again with exponential backoff and full jitter.
//
// # Progress
//
// It is stored once a second, of each segment the last key up to which
// everything is settled. A backfill begins anew, and says so in the log, when
// the number of segments, the filter or the consistency is another than before,
// and when the table was deleted and created again. One that is finished stays
// finished: another Run does nothing, unless Options.Again asks for it.
//
// # Permissions
//
// dynamodb:Scan and dynamodb:DescribeTable on the table.
//
// # Files
//
//	scan.go      Scan, and how many segments
//	source.go    Source, Run and its end
//	options.go   options and hooks
//	table.go     what is to be known of the table
//	client.go    the calls
//	reader.go    the pages of a segment, within the budget
//	segment.go   a segment's flow; how far it is settled
//	progress.go  what is stored
//	refusals.go  giving up what a route refuses altogether
//	health.go    readiness
//	errors.go    what the service's errors mean
package snapshot
