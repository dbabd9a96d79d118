//go:build unix

// Package names is what bench/soak and its daemon have in common.
package names

import "fmt"

// Tables, queue and index.
const (
	Items   = "soak-items"
	Parents = "soak-parents"
	Markers = "soak-markers"
	Queue   = "soak-changes"
	Index   = "soak-items"
)

// Routes of the daemon.
const (
	Send    = "send"
	Project = "project"
	Count   = "count"
)

// Message is the body of the message for a change: the item's revision is that
// of its new image, or of the old one when it was deleted.
func Message(event, id string, rev int64) string { return fmt.Sprintf("%s %s %d", event, id, rev) }
