// Package dynamodb writes to tables and reads from them, in Items. Its methods
// are what handlers ask for in the words of package dynamo.
//
//	store, err := dynamodb.New(cfg, dynamodb.Options{})
//	err = store.Put(ctx, "orders", order)
//
// A write that returned nil is durable.
package dynamodb
