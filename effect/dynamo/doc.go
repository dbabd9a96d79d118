// Package dynamo is the vocabulary of reads and writes of tables, in Items:
// what handlers ask for and what a sink does. Handlers take the functions they
// need, such as
//
//	Query func(context.Context, dynamo.Query) (dynamo.Page, error)
//
// and package sinks/dynamodb has them all; tests put others in their place. It
// imports no AWS SDK.
package dynamo
