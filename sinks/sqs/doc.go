// Package sqs sends messages to an Amazon SQS queue, many in one request.
//
//	queue, err := sqs.New(cfg, "https://sqs.us-east-1.amazonaws.com/123456789012/escalations", sqs.Options{})
//	…
//	r.Handle("search#INSERT", func(ctx context.Context, rec *sluice.Record) error {
//		return queue.Send(ctx, sqs.Message{Body: body(rec), Delay: 5 * time.Minute})
//	})
//
// [Queue.Send] returns nil when the queue has the message. Calls of concurrent
// handlers share requests of up to ten messages (package batch says when a
// request goes), and each gets its own message's result.
//
// # Failures
//
// A message that SQS would never take (too large, no body, characters that
// SQS does not allow, too many attributes, a delay that is not possible) is a
// sluice.Permanent error before anything is sent, so that it spoils no
// request; so is one that SQS refuses as the sender's fault. A request of
// which SQS took only a part is repeated for the rest, with delays and
// attributes, a few times with backoff; what then remains is an ordinary error
// that the flow retries. Everything else (no such queue, no permission, no
// network) is an ordinary error too: it is the queue that fails, not the
// message.
//
// A message may arrive twice: an answer can be lost after SQS has taken the
// message. A FIFO queue drops the second if it has the same DeduplicationID
// and comes within five minutes.
//
// # Delays
//
// SQS delays a message by at most 15 minutes; for longer, let the
// consumer send the identical message again until its time has come. A Delay
// of 0 means the queue's own default, because SQS cannot be told otherwise by
// this client: give queues that take undelayed messages a DelaySeconds of 0.
// [Queue.Check] warns of one that has not. A FIFO queue has no delay of a
// message's own.
//
// # FIFO queues
//
// A queue is FIFO when its name ends in ".fifo". Messages of one group that
// are sent one after another, or by one [Queue.SendAll], arrive in that order
// or not at all: each request holds at most one message of a group, and when
// one fails in a way that may pass, the later ones of its group fail unsent.
// Many groups therefore make full requests, and one group makes small ones.
//
// Each message needs a DeduplicationID, or the queue content-based deduplication.
// Check refuses a queue without it unless Options.DeduplicationIDs is set. Where
// Check was not called, SQS refuses the messages: that is a failure of the queue,
// and not of the messages.
package sqs
