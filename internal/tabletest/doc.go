// Package tabletest is a little world for the tests of applications: tables in
// memory that take the reads and writes of package dynamo, with conditions,
// transactions, indexes and the records of their streams; queues with delays
// and redelivery; and a loop that hands all of it to a router, in the order of a
// clock that only the world moves.
package tabletest
