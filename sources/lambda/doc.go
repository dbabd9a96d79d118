// Package lambda runs a router's routes in an AWS Lambda function. A DynamoDB
// stream triggers it, through an event source mapping or an EventBridge pipe, or
// an SQS queue does, or both.
//
//	func main() {
//		r := router.New(…)
//		r.Handle("search#INSERT", onSearch)
//		lambda.Start(r, lambda.Options{})
//	}
//
// # Responses
//
// Each invocation is one batch of records of one shard. It runs through its own
// flow, in order per item and concurrently across items. A failed record stops the
// batch: no later record starts, and running ones finish. The response names the
// first unsettled record, and the service sends that record and all later ones
// again. All earlier records are durable.
//
//	all settled         {"batchItemFailures":[]}
//	not all settled     {"batchItemFailures":[{"itemIdentifier":"<SequenceNumber>"}]}
//	from a pipe         the same with eventID, for the first and every later record
//	tumbling window     the same beside "state", which is repeated unchanged
//	no response         an error: the service sends the whole batch again
//
// Three things prevent a response: an event that is not from a DynamoDB stream
// (the error says what it looks like), a record without a valid identifier where
// one is needed, and a route that reads images that the stream does not carry. An
// unsettled record is never reported as done.
//
// # ReportBatchItemFailures
//
// The event source mapping must have FunctionResponseTypes set to
// [ReportBatchItemFailures]. Without it the service ignores the response and takes
// every returned invocation for a full success: failed records are LOST. The event
// does not show the setting, so this package cannot check it. The deployment must.
//
// # Queues
//
// An event whose first record is from an SQS queue is a batch of messages. They
// take the routes "<kind>#MESSAGE". In a standard queue each message fails alone.
// In a FIFO queue the messages of one group run in order; the first failure is
// reported with all later messages of its group:
//
//	all settled          {"batchItemFailures":[]}
//	not all settled      {"batchItemFailures":[{"itemIdentifier":"<messageId>"},…]}
//	no response          an error: the service delivers the whole batch again
//
// The mapping of a queue must have [ReportBatchItemFailures] set too, or every
// message of a batch is deleted. As a safeguard, a batch without any routed
// message is an error. A failed message comes again after the queue's visibility
// timeout, which should be six times the function's own. A delay that a handler
// asks for is not kept. A permanent failure goes to Options.DeadLetter, or finally
// to the queue's own dead-letter queue.
//
// # Deadline
//
// Nothing starts within Options.Margin of the invocation's deadline. At half of
// the margin the contexts of running handlers are cancelled. At a quarter the
// response is sent: records settled by then count.
//
// A handler that ignores its context may still run after the response. The process
// is then frozen with it. The next invocation first waits for it, so that an
// item's changes stay in order. If the handler has not returned within
// Options.StuckWait, the invocation fails as a whole and the process exits, so
// that the service starts a new one. Another instance of the function may receive
// the record meanwhile. A handler whose effects must not be overtaken fences them
// with [sluice.Sequence.Fence].
//
// # Retries and poison
//
// Nothing is retried within an invocation. The service retries, with its own
// backoff and limits, and attempts cannot be counted across invocations. A
// [sluice.Permanent] failure goes to Options.DeadLetter. So does a record that has
// been failing for longer than MaxAge, if set. Without Options.DeadLetter they
// stop the batch until the mapping's MaximumRetryAttempts or
// MaximumRecordAgeInSeconds ends the retries.
//
// # Between invocations
//
// Nothing runs between invocations, when the process is frozen: no timer, no
// goroutine, no background flush. A handler of [NewHandler] may be invoked concurrently.
package lambda
