// Package deadletter keeps the records that failed for good, whole, until
// somebody deals with them. A stream forgets a record after a day; a dead
// letter keeps it with its position, the route that failed, and why. Records
// that were lost before they were read leave a dead letter, too: a gap, which
// says where they were.
//
// A [Box] keeps entries in a state store, which is the default of a daemon, or
// in a [File]. It parks for a flow, lists, and redrives: it runs an entry's
// route again, through the same router, and deletes the entry once the route
// has succeeded. A [Sender] parks into what only takes, such as a queue.
//
// An entry's id comes from the record and its route, so that the same failure,
// parked twice by a restart, is one entry. When the record succeeds after the
// restart, [Box.Handled] deletes the entry: a program that parks in a Box calls it
// from flow.Hooks.Handled. Ids of one stream sort in the order
// of the changes; those of gaps come after all records.
//
// A letter may be kept where it must not be large, such as in a queue
// ([Sender.AtMost]). Then its record is compressed, and if that is not enough it
// is kept by reference: where it was in its stream, and the item's keys. Parking
// never fails because a record is large.
//
// Others may be able to write where letters are sent, and a redrive runs what is
// there. So whoever sends them signs them ([Keys.Sign]), and a box over such a place
// ([NewSignedBox]) refuses to redrive others.
//
// # Redriving
//
// Other changes of the item may have been handled since the record was parked.
// So a redriven record goes only to routes that allow it (router.Redrive), and
// says so in its Origin. Where a flow parks whole items (flow.Options.ParkItem)
// later changes wait behind a parked one, and RedriveAll runs them in order. A
// single entry is refused while earlier changes of its item are parked, unless
// it is said what to do with them. A message of a queue has no later changes:
// every route of messages takes it.
//
// An entry is deleted once its routes have succeeded: a crash in between runs it
// again, and loses nothing. Of what is had by reference, the record is read again
// from the stream, which holds it for a day; later the item as it is now takes
// its place, as a SNAPSHOT record, and only for routes that name SNAPSHOT. The
// outcome says so.
//
// A redrive runs beside the flows: it knows nothing of their limits, and does
// not wait for a change of the same item that a flow is handling.
package deadletter
