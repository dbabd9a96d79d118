// Package snapshot reads the current items of a table by Scan. A [Source] passes
// them to the routes of a router, for a backfill. [Scan] yields them to a caller,
// for a comparison.
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
// and New. Only routes that write SNAPSHOT out receive it. `order#*` does not
// match, so that nobody is notified about an order of last year. Its EventID
// depends only on the table and the key, so data that handlers keep under it is
// the same at every read.
//
// # Guarantees
//
// Every item that is in the table from the beginning of the backfill to its end is
// handled by its routes at least once. It is settled or among the dead letters
// before the backfill is finished. A killed process continues after the last page
// that is fully settled; later pages are read again. An item that is written
// meanwhile comes in its old or new state; a new item may not come at all.
//
// # Beside live reading
//
// The table's stream must be read from a position before the backfill: then the
// stream has every change after an item was read. So the reading of the stream
// begins first. Run refuses to begin while the store has no start of the table's
// stream for the application. An item of the backfill and a change of the same
// item are handled in any order. The target must decide which of them is newer, by
// a version of the item. A projection does that, and refuses SNAPSHOT records
// without a version.
//
// The table is read with strong consistency. An eventually consistent read may
// return an item before a change that was made just before the reading of the
// stream began. No later stream record has that change, and it would be missing
// for good. If the stream has certainly been read for some time (minutes are
// plenty), you may set ScanOptions.Eventual, which takes half of the units.
//
// # Read capacity
//
// A backfill takes a share of the table's read capacity, measured by the
// consumption that the service reports, for all segments together: a quarter of
// the provisioned capacity, or 1,000 units per second of an on-demand table. A
// throttled call is retried with exponential backoff and full jitter.
//
// # Progress
//
// Once a second the backfill stores, for each segment, the last key up to which
// everything is settled. A backfill starts over, and logs that, if the number of
// segments or the consistency has changed, or if the table was recreated. A finished backfill stays finished: another Run does nothing unless
// Options.Again is set.
//
// # Permissions
//
// dynamodb:Scan and dynamodb:DescribeTable on the table.
//
// # Files
//
//	scan.go      Scan, and the number of segments
//	source.go    Source, Run and its end
//	options.go   options and hooks
//	table.go     attributes of the table
//	client.go    the calls
//	reader.go    the pages of a segment, within the budget
//	segment.go   a segment's flow and its progress
//	progress.go  the stored progress
//	refusals.go  giving up if a route refuses every item
//	health.go    readiness
//	errors.go    the meaning of the service's errors
package snapshot
