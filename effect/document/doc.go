// Package document is the vocabulary of writes to and reads of a search index:
// what handlers ask for and what a sink does. Handlers take the functions they
// need, such as
//
//	Write func(context.Context, document.Op) error
//
// and package sinks/opensearch has them all; tests put others in their place. It
// imports no client.
package document
