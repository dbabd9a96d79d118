// Package lambda runs a router's routes in an AWS Lambda function that a
// DynamoDB stream triggers, through an event source mapping or an EventBridge
// pipe, or an SQS queue, or both.
//
//	func main() {
//		r := router.New(…)
//		r.Handle("search#INSERT", onSearch)
//		lambda.Start(r, lambda.Options{})
//	}
//
// # Answers
//
// Each invocation is one batch of records of one shard. It runs through a flow
// of its own, in order per item and concurrently across items. A failed record
// stops the batch: no later record is started, those that run finish. The
// answer then names the first record that is not settled, and the service
// sends that one and all after it again. Everything before it is durable.
//
//	all settled         {"batchItemFailures":[]}
//	something is not    {"batchItemFailures":[{"itemIdentifier":"<SequenceNumber>"}]}
//	from a pipe         the same with eventID, for the first and every later record
//	tumbling window     the same beside "state", which is repeated unchanged
//	cannot be answered  an error: the service sends the whole batch again
//
// What cannot be answered is an event that is not one of a DynamoDB stream
// (the error says what it looks like), a record without a valid identifier
// where one is needed, and a route that reads images the stream does not
// carry. Never is an unsettled record answered as done.
//
// # ReportBatchItemFailures
//
// The event source mapping must have FunctionResponseTypes set to
// [ReportBatchItemFailures]. Without it the service ignores the answer, takes
// every invocation that returned for a full success, and the records that
// failed are LOST. The event does not tell whether it is set, so that this
// package cannot check it: the deployment must.
//
// # Queues
//
// An event whose first record is of an SQS queue is a batch of messages. They
// take the routes "<kind>#MESSAGE". In a standard queue each message fails
// alone; in a FIFO queue the messages of one group run in order, and the first
// that fails is answered with all later ones of its group:
//
//	all settled          {"batchItemFailures":[]}
//	something is not     {"batchItemFailures":[{"itemIdentifier":"<messageId>"},…]}
//	cannot be answered   an error: the service delivers the whole batch again
//
// The mapping of a queue must have [ReportBatchItemFailures] set, too, or every
// message of a batch is deleted. As a safeguard, a batch of which no message has
// a route is an error. A message that failed comes again after the queue's
// visibility timeout, which should be six times the function's own; a delay that
// a handler asks for is not kept. What fails for good goes to
// Options.DeadLetter, or in the end to the queue's own dead-letter queue.
//
// # Deadline
//
// Options.Margin before the invocation's deadline nothing is started any more.
// At half of the margin the contexts of handlers still running are cancelled,
// at a quarter the answer goes out: what was settled by then is kept.
//
// A handler that ignores its context may still run when its invocation has
// been answered. The process is then frozen with it. The next invocation waits
// for it first, so that an item's changes stay in order; if it has not
// returned within Options.StuckWait, the invocation fails as a whole and the
// process exits, for the service to start a fresh one. Another instance of the
// function may receive the record meanwhile: a handler whose effects must not
// be overtaken fences them with [sluice.Sequence.Fence].
//
// # Retries and poison
//
// Nothing is retried within an invocation: the service does that, with its own
// back-off and limits, and attempts cannot be counted across invocations. A
// [sluice.Permanent] failure and, with MaxAge, a record that has been failing
// for too long go to Options.DeadLetter; without one they stop the batch until
// the mapping's MaximumRetryAttempts or MaximumRecordAgeInSeconds give it up.
//
// # Between invocations
//
// Nothing runs between invocations, when the process is frozen: no timer, no
// goroutine, no background flush. A [Handler] may be invoked concurrently.
package lambda
