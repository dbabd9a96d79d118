// Package sluice reacts to changes in DynamoDB tables.
//
// A stream record enters as a [Record], is matched by a router to one or more
// routes, and each route's [Handler] answers with one error. What a source
// gets back is one number: how many records in a row, from the first it
// submitted, are durable.
package sluice
