// Package dynamodb reads and writes tables in Items. Its methods implement the
// functions of package dynamo for handlers.
//
//	store, err := dynamodb.New(cfg, dynamodb.Options{})
//	err = store.Put(ctx, "orders", order)
//
// A write that returned nil is durable. docs/dynamodb.md describes its cost and
// permissions.
//
// # Put and Delete
//
// Concurrent calls share BatchWriteItem requests of up to 25 writes to any tables,
// and each call gets its own result. Package batch describes when a request is
// sent. [Store.PutAll] and [Store.DeleteAll] write many items at once.
//
// Writes of one key keep the order of the calls, so the last one wins: the second
// is sent once the first has its result. A key is its attributes with their names;
// numbers compare by value. So a Put needs the names of the table's key
// attributes, from DescribeTable or [Options].Keys. A Delete has them.
//
// # Conditions and transactions
//
// [Store.Write] makes one write with a condition. [Store.Transact] makes several
// writes or none. [Store.Once] counts each record once. They use their own
// requests, and do not wait for a pending Put or Delete of the same key.
//
// # Failures
//
// An impossible write (an item of more than 400 KB, without its key, or invalid
// for DynamoDB) is a sluice.Permanent error. The other writes of its request are
// sent without it. Sluice repeats writes that DynamoDB returns unprocessed or
// refuses temporarily, with backoff, up to Attempts times. After that they are
// ordinary errors, which the flow retries. Every other failure (no such table, no
// permission, no network) is an ordinary error too: the table fails, not the item.
// Writes to other tables in the same request still succeed.
//
// A write may be done twice, because a response can be lost. For a Put and a
// Delete that makes no difference.
//
// # Reads
//
// [Store.Get], and [Store.Query] of a table, are consistent: they see every write
// that returned nil. A Query of an index lags behind.
//
// # Budget
//
// [Options].Budget limits the write capacity that the Store takes of a table. For
// example, a cascade of deletions then leaves room for the application. Writes
// wait until earlier ones have been paid for; writes to other tables do not. The
// limit is per Store: processes do not share it.
package dynamodb
