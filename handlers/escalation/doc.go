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
// and two consume the queue of its messages:
//
//	c, err := escalation.NewConsumer(escalation.ConsumerConfig{…})
//	r.Handle("manhunt.attempt#MESSAGE", c.Try)
//	r.Handle("manhunt.expire#MESSAGE", c.Expire)
//
// Start sends the message for the first step; Try tries the step and writes an
// attempt; the attempt's record makes Next send the message for the step after
// it, or, after the last one, the message that lets the escalation expire. The
// chain goes on from the stream, so that a crash between trying and sending
// cannot break it.
//
// All read the escalation when they are called, and its ladder, and do nothing
// for an escalation that is over. That is why a record may be handled twice,
// late, or redriven: the message is the same, byte for byte, as long as the
// items are, and carries a key that is stable even when they are not.
//
// The step after an attempt is the first that comes later by (order, id), not
// by position: a ladder that is edited meanwhile shifts positions.
//
// A message says not before when it is due. Queues delay by no more than a
// limit ([Config.MaxDelay]); the consumer that gets one early sends it once
// more.
//
// Try claims a step before it contacts anybody: one transaction checks that the
// escalation is active and puts the attempt, with a lease, if there is none. A
// second delivery finds the attempt: made, it is dropped; with a lease that
// lives, it stays in the queue; with one that is over, because a process died,
// it takes the step over. So there is one attempt a step, and no two calls for
// it while a lease lives; after a crash during the call there is a second call
// with the same key, which the provider can tell from a new one. A step that is
// gone or disabled when its turn comes is written down as skipped, and the
// chain goes on.
package escalation
