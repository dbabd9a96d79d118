// Package escalation tries the steps of a ladder one after another, with
// waits, until someone answers.
//
// An escalation is an item (a search for a contact, an open incident) whose
// status says whether it still climbs. Its ladder is a partition of items, the
// steps, each with an order and a wait. Two handlers keep it going:
//
//	e, err := escalation.New(escalation.Config{…})
//	r.Handle("search#INSERT", e.Start, router.Redrive())
//	r.Handle("searchAttempt#MODIFY", e.Next, router.Set("attemptedDatetime"), router.Redrive())
//
// Start sends the message for the first step; whoever consumes the queue tries
// the step and writes an attempt; the attempt's record makes Next send the
// message for the step after it, or, after the last one, the message that lets
// the escalation expire. The chain goes on from the stream, so that a crash
// between trying and sending cannot break it.
//
// Both read the escalation and its ladder when they are called, and do nothing
// for an escalation that is over. That is why a record may be handled twice,
// late, or redriven: the message is the same, byte for byte, as long as the
// items are, and carries a key that is stable even when they are not.
//
// The step after an attempt is the first that comes later by (order, id), not
// by position: a ladder that is edited meanwhile shifts positions.
//
// A message says not before when it is due. Queues delay by no more than a
// limit ([Config.MaxDelay]); a consumer that gets one early sends it once more.
package escalation
