// Package message helps to send messages through queues: bodies with reproducible
// bytes, and messages with a longer delay than a queue allows.
package message
