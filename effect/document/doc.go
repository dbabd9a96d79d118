// Package document defines reads and writes of a search index: what handlers ask
// for and a sink does. Handlers take the functions that they need, such as
//
//	Write func(context.Context, document.Op) error
//
// Package sinks/opensearch implements all of them; tests substitute others.
// Package document imports no client.
package document
