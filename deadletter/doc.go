// Package deadletter keeps whole records that failed for good, until an operator
// handles them. A stream deletes a record after a day. A dead letter keeps it with
// its position, the route that failed, and the error. Records that were lost
// before they were read leave a dead letter too: a gap, with its place in the
// stream.
//
// A [Box] keeps entries in a state store, the default of a daemon, or in a [File].
// It parks for a flow, lists and redrives. A redrive runs an entry's route again
// through the same router, and deletes the entry once the route has succeeded. A
// [Sender] parks where letters can only be sent, such as a queue.
//
// An entry's id comes from the record and its route. So a failure that is parked
// twice, because of a restart, is one entry. If the record succeeds after the
// restart, [Box.Handled] deletes the entry: a program that parks in a Box calls it
// from flow.Hooks.Handled. Ids of one stream sort in the order of the changes. Ids
// of gaps come after all records.
//
// Some places limit the size of a letter, such as a queue ([Sender.AtMost]). There
// the record is compressed. If that is not enough, the letter keeps a reference:
// the record's place in its stream, and the item's keys. Parking never fails
// because a record is large.
//
// Other programs may be able to write to the place where letters are sent, and a
// redrive runs its letters. So Sluice's functions sign letters, and a box over such
// a place refuses to redrive others ([NewBox]).
//
// # Redriving
//
// Later changes of the item may already be handled. So a redriven record goes only
// to routes that allow it (router.Redrive), with the Origin Redriven. If a flow
// parks whole items (flow.Options.ParkItem), later changes wait behind a parked
// one, and RedriveAll runs them in order. Redrive refuses a single entry while
// earlier changes of its item are parked, unless How says what to do with them. A
// queue message has no later changes: every route of messages takes it.
//
// An entry is deleted once its routes have succeeded. A crash in between runs it
// again and loses nothing. For a reference, the redrive reads the record again
// from the stream, which keeps it for a day. Later it uses the current item
// instead, as a SNAPSHOT record, for routes that name SNAPSHOT only. The outcome
// says so.
//
// A redrive runs beside the flows. It does not know their limits, and does not
// wait for a change of the same item in a flow.
package deadletter
