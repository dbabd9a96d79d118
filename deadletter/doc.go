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
// parked twice by a restart, is one entry. Ids of one stream sort in the order
// of the changes; those of gaps come after all records.
//
// # Redriving
//
// Other changes of the item may have been handled since the record was parked.
// So a redriven record goes only to routes that allow it (router.Redrive), and
// says so in its Origin. Where a flow parks whole items (flow.Options.ParkItem)
// later changes wait behind a parked one, and RedriveAll runs them in order. A
// message of a queue has no later changes: every route of messages takes it.
//
// A redrive runs beside the flows: it knows nothing of their limits, and does
// not wait for a change of the same item that a flow is handling.
package deadletter
