// Package dynamodb writes to tables and reads from them, in Items. Its methods
// are what handlers ask for in the words of package dynamo.
//
//	store, err := dynamodb.New(cfg, dynamodb.Options{})
//	err = store.Put(ctx, "orders", order)
//
// A write that returned nil is durable. docs/dynamodb.md tells what it costs
// and which permissions it needs.
//
// # Put and Delete
//
// Calls of concurrent handlers share BatchWriteItem requests of up to 25
// writes to any tables (package batch says when a request goes), and each gets
// its own result. [Store.PutAll] and [Store.DeleteAll] write many at once.
//
// Writes of one key follow one another in the order of the calls, so that the
// last one wins: the second is sent once the first has its result. A key is
// its attributes with their names; numbers are compared by value. A Put
// therefore needs the names of the table's key attributes, from DescribeTable
// or [Options].Keys; a Delete has them.
//
// # Conditions and transactions
//
// [Store.Write] makes one write with a condition, [Store.Transact] several or
// none, and [Store.Once] counts each record once. They go in requests of their
// own, and do not wait for a Put or Delete of the same key that is on its way.
//
// # Failures
//
// What can never be written (an item of more than 400 KB, or without its key,
// or that DynamoDB calls invalid) is a sluice.Permanent error, and spoils no
// request: the others are written without it. What DynamoDB gives back
// unprocessed, or refuses for the moment, is written again with backoff, up to
// Attempts times; what then remains is an ordinary error that the flow
// retries. Everything else (no such table, no permission, no network) is an
// ordinary error too: it is the table that fails, not the item. It does not
// spoil the writes to other tables in the same request.
//
// A write may be done twice: an answer can be lost after DynamoDB has done it.
// Of a Put and a Delete that makes no difference.
//
// # Reads
//
// [Store.Get], and [Store.Query] of a table itself, are consistent: they see
// every write that returned nil. A Query of an index lags behind.
//
// # Budget
//
// [Options].Budget bounds the write capacity that the Store takes of a table,
// for example so that a cascade of deletions leaves room for the application.
// Writes wait until earlier ones have been paid for; those to other tables do
// not. The bound is that of one Store: processes do not share it.
package dynamodb
