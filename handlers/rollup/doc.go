// Package rollup keeps counters, and other rows derived from items, by the records
// of a stream. Each record takes effect exactly once:
//
//	points, err := rollup.New(rollup.Config{
//		Name: "points",
//		Counts: []rollup.Count{
//			{Table: "maps", Attribute: "num_points", Key: rollup.By("user_id", "map_id")},
//			{Table: "users", Attribute: "num_points", Key: rollup.By("user_id")},
//		},
//		Once:    store.Once, // of sinks/dynamodb
//		Get:     store.Get,
//		Markers: "markers",
//	})
//	r.Handle("point#INSERT point#MODIFY point#REMOVE", points.Handle, router.NeedsBoth(), router.Redrive())
//
// A [Count] counts the children of each parent, or sums a number of them. A record
// adds the value of its new image to the new parent, and subtracts that of its old
// image from the old parent. So a child that moves counts only at its new parent,
// and an unrelated change writes nothing.
//
// # Exactly once
//
// A stream delivers at least once, and a repeated ADD is wrong. So a record's
// additions are one transaction with the Put of a marker, whose id is
// "<Name>#<table>#<eventID>". If the marker exists, so does the effect. An eventID
// is unique. It is the same in every delivery, by Lambda, the poller or the dead
// letters.
//
// Markers expire by the time to live of their table ([Config.Life], 72 h, plus an
// hour for different clocks). An older record, from the dead letters or a file,
// could count twice. It fails permanently with an error that says so; a [Recount]
// repairs its additions. A stream keeps a record for 24 h, so only records parked
// for days are that old.
//
// A route of a Rollup may take redriven and replayed records: additions have no
// order. Each Region of a global table has its own stream, in which a change has
// another eventID. Count in one Region, or use routes with router.Regions.
//
// # Parents
//
// A missing parent is not created (unless [Count.Create] is set): a late −1 does
// not restore a deleted item. A metric counts dropped additions.
//
// A child written before its parent is not counted, then or later, and not
// subtracted at its end. A row among the markers records that, from the child's
// record until the child leaves the parent. It costs one read for each record of
// a child that no longer counts, or counts differently. Write parents first, or
// let [Config.Orphans] delete such a child. A [Recount] counts it, and notes
// that it counts from then on. If a parent is deleted and created again while
// counted children stay, their end is subtracted from the new parent: a
// [Recount] repairs that.
//
// # Other writers
//
// A transaction locks the parents while it runs. Another write of one fails with a
// TransactionConflictException and must be retried by its writer. Numbers in
// separate rows, which nobody else writes, avoid that: docs/counters.md.
//
// # Drift
//
// Counters drift when somebody else writes them, when a table is restored, or when
// records are lost or given up. [Recount] repairs them.
package rollup
