// Package rollup keeps counters, and other rows that are derived from items,
// by the records of a stream, each record with its effect exactly once:
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
// A [Count] counts the children of each parent, or sums a number of them: what
// a record adds is the value of its new image to the new parent, less that of
// its old image to the old one. So a child that moves counts at its new parent
// only, and a change of something else writes nothing.
//
// # Exactly once
//
// A stream delivers at least once, and an ADD that is repeated is wrong. That is
// why what a record adds is one transaction with the Put of a marker whose id is
// "<Name>#<table>#<eventID>": when the marker is there, so is the effect. An
// eventID is unique, and is the same whenever and however a record is delivered,
// by Lambda, poller or from the dead letters.
//
// Markers expire, by the time to live of their table ([Config.Life], 72 h, and
// an hour more for clocks that differ). A record that is older than that, from
// the dead letters or a file, could count twice: it fails for good with an
// error that says so, and what it would have added is repaired by a
// [Recount]. A stream keeps a record for 24 h, so that only what was parked for
// days comes to that.
//
// A route of a Rollup may take redriven and replayed records: adding has no
// order. Each Region of a global table has a stream of its own, in which a
// change has another eventID: count in one Region, or by routes that
// router.Regions narrows.
//
// # Parents
//
// A parent that is not there is not made (unless [Count.Create] says so): a late
// −1 does not bring back what was deleted. [Applied] and a metric
// tell what was dropped.
//
// A child that is written before its parent is not counted, then or later, and
// not subtracted when it goes: a row among the markers says so of the two, from
// the child's record until it leaves the parent. It costs a read for each record
// of a child that counts no more, or counts otherwise. Write parents first, or
// have [Config.Orphans] delete such a child. A [Recount] counts it, and notes that it
// counts from then on. When a parent is deleted and made again while children stay
// that it counted, their end is subtracted from the new one: a [Recount] repairs
// that.
//
// # Other writers
//
// A transaction holds the parents while it runs: another's write of one fails with
// a TransactionConflictException, which its writer has to retry. Numbers on rows
// of their own, which nobody else writes, keep the two apart: docs/counters.md.
//
// # Drift
//
// Counters drift when somebody writes to them, when a table is restored, or when
// records are lost or given up. [Recount] repairs them.
package rollup
