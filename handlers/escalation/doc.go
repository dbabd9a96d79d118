// Package escalation tries the steps of a ladder one after another, with waits,
// until someone answers.
//
// An escalation is an item (a search for a contact, an open incident) whose status
// says whether it is active. Its ladder is a partition of items, the steps. Each
// step has an order and a wait. Three handlers of the stream drive it, and one of
// the watchdog's queue:
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
// Start sends the message for the first step. Try tries the step and writes an
// attempt. On the attempt's record, Next sends the message for the next step.
// After the last step it sends the expiry message, or the first step again. The
// chain continues from the stream, so a crash between trying and sending cannot
// break it. docs/escalation.md has the state machine.
//
// Every handler reads the current escalation and ladder, and does nothing for an
// escalation that is over. So a record may be handled twice, late, or redriven:
// the message is the same, byte for byte, as long as the items are. Its key is
// stable even if they change.
//
// # Rounds
//
// An escalation that becomes active again gets a new round: Resume increments the
// number, and its attempts have keys of their own. A new escalation under the id
// of a deleted one gets a new round too: Start finds attempts older than the
// INSERT. Messages and records of other rounds are skipped.
//
// # The ladder
//
// The step after an attempt is the first that comes later by (order, id), not by
// position: an edit of the ladder shifts positions. A step that cannot be read is
// reported to Config.Problem and skipped. A step that is missing or disabled at
// its turn is recorded as skipped, and the chain continues.
//
// A message has its due time as notBefore. Queues limit delays
// ([Config.MaxDelay]); a consumer that receives a message early sends it again.
//
// # Claims
//
// Try claims a step before it calls anybody: it puts the attempt with a lease if
// there is none, and then checks again that the escalation is active. A second
// delivery finds the attempt. If the attempt is finished, the message is dropped.
// While its lease is valid, the message stays in the queue. After the lease,
// because a process died, the second delivery takes the step over. So there is one
// attempt per step, and no second call during a lease. After a crash during the
// call a second call has the same key, by which the provider recognises it. No
// write is a transaction: it would hold an item for a moment and fail the
// application's own write.
//
// # The watchdog
//
// Start and Resume send a message that re-sends itself in a queue of its own
// ([Watchdog]). If an attempt is overdue, because a message or a record was lost,
// it sends the message again and raises an alarm. If the expiry is overdue, it
// ends the escalation. An escalation that ends without a call, because every step
// failed or was skipped, raises an alarm too.
//
// # Files
//
//	config.go      Config, and the arguments of handlers
//	escalation.go  Start and Next
//	resume.go      Resume: new rounds, snoozes
//	again.go       new rounds of reused ids
//	end.go         the end of an unanswered escalation
//	watch.go       Watch; moved.go: keeps watchdogs from multiplying
//	upcoming.go    what follows an attempt
//	ladder.go      steps in their order
//	attributes.go  reading items and messages
//	consumer.go    Try and Expire
//	claim.go       the life of an attempt
//	contact.go     calls of one contact or several
//	metrics.go     metrics
package escalation
