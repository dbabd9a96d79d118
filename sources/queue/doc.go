// Package queue consumes Amazon SQS queues. A message is a record, and takes the
// routes of the same router.
//
//	r := router.New()
//	r.Handle("resize#MESSAGE", resize) // {"kind":"resize", …}
//	c, err := queue.New(cfg, r, queue.Options{Queues: []string{"jobs"}, DeadLetter: letters})
//	…
//	err = c.Run(ctx)
//
// A Lambda function that a queue triggers needs no Consumer: the handler of
// package sources/lambda takes the events of queues too.
//
// Options.After delays the start until another part is ready. Options.Hold stops a
// started consumer from receiving.
//
// # The life of a message
//
// The consumer receives a message when it has a free place. Options.Concurrency
// limits the messages in hand, and only messages that can start are fetched. A
// message runs through its own flow. In a FIFO queue the messages of a group run
// one after another. While a message is in hand its visibility is extended, even
// past its route's timeout, until the handler has returned.
//
// A message is deleted only when it is settled, or durable in the dead letters;
// one call deletes many. A failed deletion is retried while the message is hidden
// from others. A consumer that may receive and not delete handles a full hand
// once, and then stands still, not ready.
//
// Nothing is retried in memory. A failed message is returned with a delay, so that
// neither a crash nor a long wait occupies the consumer. The delay is exponential
// by its receives, with full jitter, or what [sluice.RetryAfter] asks for, up to
// twelve hours. When the message comes again, all its routes run again, even
// successful ones, and the Rest of a [sluice.Remaining] is forgotten. Routes
// behind a failing route wait for it. A message that is parked before they have
// run is parked for all of its routes.
//
// # Failures
//
// A [sluice.Permanent] failure is parked at once. So are a body that is not a JSON
// object, and a message without a route. Any other failing message is parked after
// MaxReceives receives, if its route succeeds for others. It is also parked before
// it becomes too old for the queue: at 80 % of its MessageRetentionPeriod.
// [sluice.RetryAfter] and [sluice.Overloaded] park nothing before that, but each
// costs a receive. After them, a message is parked after two other failures. Five
// consecutive failures of a route, for several messages, are an outage. The
// consumer then parks nothing for that route, receives one message at a time with
// pauses of up to 30 s, and is not ready until one succeeds. The other states of a
// route (see package flow) do not exist for queues.
//
// Without Options.DeadLetter these messages stay in the queue, until its redrive
// policy moves them. Use one or the other. A redrive policy whose maxReceiveCount
// is lower than MaxReceives acts first.
//
// # FIFO queues
//
// SQS delivers no message of a group while an earlier one is hidden. Later
// messages received together with a failing one do not start, and are returned
// with the same delay. The next message of a group starts when the deletion of the
// previous one is done, which costs a round trip. Groups run concurrently.
//
// # Duplicates
//
// Every message is handled at least once. It comes again when the process dies,
// when it cannot be deleted, when a handler takes longer than the twelve hours for
// which SQS can hide a message, and when SQS itself delivers it twice. A message
// that comes again while it is in hand does not start a second time.
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
//	source.go    one queue and its attributes
//	receive.go   receiving, and starting lanes
//	hand.go      messages in hand: places, lanes, leases
//	renew.go     extending visibility
//	work.go      running a message, and acting on the result
//	judge.go     poison or outage; slowing down
//	calls.go     deleting and returning, many in one call
//	errors.go    the meaning of SQS's errors
//	health.go    readiness
package queue
