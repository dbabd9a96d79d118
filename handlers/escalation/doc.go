// Package escalation tries the steps of a ladder one after another, with
// waits, until someone answers.
//
// An escalation is an item (a search for a contact, an open incident) whose
// status says whether it still climbs. Its ladder is a partition of items, the
// steps, each with an order and a wait. Three handlers of the stream keep it going,
// and one of the watchdog's queue:
//
//	e, err := escalation.New(escalation.Config{…})
//	r.Handle("search#INSERT", e.Start, router.Redrive())
//	r.Handle("search#MODIFY", e.Resume, router.NeedsBoth(), router.Redrive())
//	r.Handle("searchAttempt#MODIFY", e.Next, router.Set("attemptedDatetime"), router.Redrive())
//	r.Handle("manhunt.watch#MESSAGE", e.Watch)
//
// Two more consume the queue of its messages:
//
//	c, err := escalation.NewConsumer(escalation.ConsumerConfig{…})
//	r.Handle("manhunt.attempt#MESSAGE", c.Try)
//	r.Handle("manhunt.expire#MESSAGE", c.Expire)
//
// Start sends the message for the first step; Try tries the step and writes an
// attempt; the attempt's record makes Next send the message for the step after
// it, or, after the last one, the message that lets the escalation expire, or
// that of the first step again. The chain goes on from the stream, so that a crash
// between trying and sending cannot break it. docs/escalation.md has the state
// machine.
//
// All read the escalation when they are called, and its ladder, and do nothing
// for an escalation that is over. That is why a record may be handled twice,
// late, or redriven: the message is the same, byte for byte, as long as the
// items are, and carries a key that is stable even when they are not.
//
// # Rounds
//
// An escalation that is active again after it was over has a new round: Resume
// raises the number, and its attempts have keys of their own. So has one that is put
// under the id of a deleted one: Start finds attempts that are older than the
// INSERT. Messages and records of another round than the escalation's are skipped.
//
// # The ladder
//
// The step after an attempt is the first that comes later by (order, id), not
// by position: a ladder that is edited meanwhile shifts positions. A step that
// cannot be read is told to Config.Problem and passed over. A step that is gone or
// disabled when its turn comes is written down as skipped, and the chain goes on.
//
// A message says not before when it is due. Queues delay by no more than a
// limit ([Config.MaxDelay]); the consumer that gets one early sends it once
// more.
//
// # Claims
//
// Try claims a step before it contacts anybody: it puts the attempt, with a lease,
// if there is none, and then reads once more whether the escalation is active. A
// second delivery finds the attempt: made, it is dropped; with a lease that
// lives, it stays in the queue; with one that is over, because a process died,
// it takes the step over. So there is one attempt a step, and no two calls for
// it while a lease lives; after a crash during the call there is a second call
// with the same key, which the provider can tell from a new one. No write is a
// transaction: one that holds an item for a moment would fail the application's own
// write of it.
//
// # The watchdog
//
// Start and Resume send a message that moves itself along in a queue of its own
// ([Watchdog]). When an attempt is overdue, since a message or a record was lost, it
// sends the message again and raises an alarm; when the expiry is, it ends the
// escalation. One that ends without a call, since every step has failed or was
// skipped, is an alarm, too.
//
// # Files
//
//	config.go      Config, and what a handler is given
//	escalation.go  Start and Next
//	resume.go      Resume: new rounds, snoozes
//	again.go       new rounds of ids that are used again
//	end.go         what ends an escalation that nobody has answered
//	watch.go       Watch; moved.go: that watchdogs do not multiply
//	upcoming.go    what comes after an attempt
//	ladder.go      steps in their order
//	attributes.go  reading items and messages
//	consumer.go    Try and Expire
//	claim.go       the life of an attempt
//	contact.go     calls, of one contact or several
//	metrics.go     what is counted
package escalation
