// Package dynamo defines reads and writes of tables in Items: what handlers ask
// for and a sink does. Handlers take the functions that they need, such as
//
//	Query func(context.Context, dynamo.Query) (dynamo.Page, error)
//
// Package sinks/dynamodb implements all of them; tests substitute others. Package
// dynamo imports no AWS SDK.
package dynamo
