// Package message is what Sluice's handlers and their users send through
// queues: bodies whose bytes depend on nothing but what they say, and messages
// that are due later than a queue can delay them.
package message
