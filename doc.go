// Package sluice reacts to changes in DynamoDB tables.
//
// A source decodes a stream record into a [Record]. A router selects one or more
// routes for it. The [Handler] of each route handles the record and returns one
// error. The flow reports the watermark back to the source: the number of records,
// counted from the first submitted, that are durable.
package sluice
