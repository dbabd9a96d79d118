// Package sqs sends messages to an Amazon SQS queue, many per request.
//
//	queue, err := sqs.New(cfg, "https://sqs.us-east-1.amazonaws.com/123456789012/escalations", sqs.Options{})
//	…
//	r.Handle("search#INSERT", func(ctx context.Context, rec *sluice.Record) error {
//		return queue.Send(ctx, sluice.Message{Body: body(rec), Delay: 5 * time.Minute})
//	})
//
// [Queue.Send] returns nil when the queue has the message. Concurrent calls share
// requests of up to ten messages, and each gets its own result. Package batch
// describes when a request is sent.
//
// # Failures
//
// An impossible message is a sluice.Permanent error before anything is sent: it is
// too large, has no body, has characters that SQS refuses, too many attributes, or
// an invalid delay. So is a message that SQS refuses as the sender's fault. If SQS
// accepts part of a request, Queue repeats the rest, with delays and attributes, a
// few times with backoff. What remains is an ordinary error that the flow retries.
// Every other failure (no such queue, no permission, no network) is an ordinary
// error too: the queue fails, not the message.
//
// A message may arrive twice, because a response can be lost. A FIFO queue drops
// the second if it has the same DeduplicationID and comes within five minutes.
//
// # Delays
//
// SQS delays a message by at most 15 minutes. For longer, let the consumer send
// the identical message again until it is due. A Delay of 0 means the queue's own
// default, because this client cannot send an explicit 0. Set DelaySeconds to 0
// for queues of undelayed messages; [Queue.Check] warns otherwise. A FIFO queue
// does not support delays per message.
//
// # FIFO queues
//
// A queue is FIFO if its name ends in ".fifo". Messages of one group that are sent
// one after another, or by one [Queue.SendAll], arrive in that order or not at
// all. Each request has at most one message of a group. After a temporary failure,
// the later messages of its group fail unsent. So many groups make full requests,
// and one group makes small ones.
//
// Each message needs a DeduplicationID, or the queue needs content-based
// deduplication. Check refuses a queue without it unless Options.DeduplicationIDs
// is set. Without Check, SQS refuses the messages. That counts as a failure of the
// queue, not of the messages.
package sqs
