//go:build unix

// Package tell is the reports of the programs of bench/figures: one JSON object
// per line on standard output.
package tell

import (
	"encoding/json"
	"os"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/bench/local"
)

// Variables that a program finds in its environment, besides those of AWS and
// SLUICE_ENDPOINT_DYNAMODB.
const (
	EnvStream  = "FIGURES_STREAM"  // ARN of the stream to read; not for the daemon
	EnvRecords = "FIGURES_RECORDS" // in the backlog
	EnvEach    = "FIGURES_EACH"    // the daemon reports each record, instead of the end of a backlog
)

// Sent is the attribute that says when its item was written, in Unix
// nanoseconds.
const Sent = "sentAt"

// Line is one report. Times are Unix nanoseconds.
type Line struct {
	At   int64 `json:",omitempty"` // when a record was handled
	Sent int64 `json:",omitempty"` // when it was written

	Drained *Drained `json:",omitempty"`
}

// Drained is the report at the end of a backlog.
type Drained struct {
	First int64 // when the first page had come; of the daemon, when its first record was handled
	Last  int64 // when the last had, or its last record was handled
	CPU   int64 // nanoseconds, user and system, since the process's start
}

// Say prints a line.
func Say(l Line) {
	b, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(append(b, '\n')) //nolint:errcheck // nobody listens any more
}

// Counter reports when as many records as it says have been counted.
type Counter struct {
	Records int64

	n, first atomic.Int64
}

// Count counts a record that is handled now. It may be called concurrently.
func (c *Counter) Count() {
	switch c.n.Add(1) {
	case 1:
		c.first.Store(time.Now().UnixNano())
	case c.Records:
		Say(Line{Drained: &Drained{First: c.first.Load(), Last: time.Now().UnixNano(), CPU: int64(local.CPU())}})
	}
}
