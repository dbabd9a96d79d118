// Package queue consumes Amazon SQS queues: a message is a record like any
// other, and takes the routes of the same router.
//
//	r := router.New()
//	r.Handle("resize#MESSAGE", resize) // {"kind":"resize", …}
//	c, err := queue.New(cfg, r, queue.Options{Queues: []string{"jobs"}, DeadLetter: letters})
//	…
//	err = c.Run(ctx)
//
// A Lambda function that a queue triggers needs no Consumer: the handler of
// package sources/lambda takes the events of queues, too.
//
// Options.After delays the start until something else is ready. Options.Hold keeps a
// consumer that has started from receiving.
//
// # The life of a message
//
// It is received when there is a place for it: what is in hand is bounded by
// Options.Concurrency, and nothing is fetched that cannot be started. It runs
// through a flow of its own; in a FIFO queue the messages of a group run one
// after another. For as long as it is in hand its visibility is extended, also
// past its route's timeout, until the handler has truly returned.
//
// It is deleted only when it is settled, or durable in the dead letters; many
// are deleted in one call. A deletion that fails is tried again while the
// message is kept from others: a consumer that may receive and not delete
// handles what it can hold, once, and stands still, not ready.
//
// Nothing is retried in memory. A message that failed goes back with a delay
// (exponential by its receives, with full jitter, or what [sluice.RetryAfter]
// asks for, up to twelve hours), so that neither a crash nor a long wait holds
// anything. When it comes again all its routes run again, also those that had
// succeeded, and Rest of a [sluice.Remaining] is forgotten. Routes behind one
// that fails wait for it: a message that is parked before they have run is
// parked for all of its routes.
//
// # Failures
//
// A [sluice.Permanent] failure is parked at once; so is a body that is no JSON
// object, and a message for which there is no route. Any other is parked when
// the message was received MaxReceives times and its route succeeds for others,
// or when it is about to become too old for the queue: 80 % of its
// MessageRetentionPeriod. [sluice.RetryAfter] and [sluice.Overloaded] park
// nothing before that, but each costs a receive. Five failures of a route in a row, for several messages, are an
// outage. The consumer then parks nothing for that route, receives one message at
// a time with pauses of up to 30 s, and is not ready until one succeeds. The other
// states of a route (see package flow) do not exist for queues.
//
// Without Options.DeadLetter all of these stay in the queue, whose own redrive
// policy moves them away. Have one or the other. A redrive policy whose
// maxReceiveCount is lower than MaxReceives acts first.
//
// # FIFO queues
//
// SQS delivers no message of a group while an earlier one is hidden. Later ones
// that came together with one that fails are not started, and go back with the
// same delay. The next of a group starts when the deletion of the one before it
// is done, which costs a round trip; groups run side by side.
//
// # What comes twice
//
// Every message is handled at least once. It comes again when the process dies,
// when it cannot be deleted, when a handler takes longer than the twelve hours
// for which SQS hides it at most, and when SQS delivers it twice by itself. One
// that comes again while it is in hand is not started a second time.
//
// # Permissions
//
// sqs:ReceiveMessage, sqs:DeleteMessage, sqs:ChangeMessageVisibility, and
// sqs:GetQueueUrl for a queue given by name; sqs:GetQueueAttributes is optional.
//
// # Files
//
//	consumer.go  Consumer, Run and its end
//	options.go   Options and Hooks
//	source.go    one queue: what is to be known of it
//	receive.go   receiving, and starting lanes
//	hand.go      what is in hand: places, lanes, leases
//	renew.go     extending visibility
//	work.go      running a message, and what follows
//	judge.go     poison or outage; slowing down
//	calls.go     deleting and giving back, many in one call
//	errors.go    what SQS's errors mean
//	health.go    readiness
package queue
