// Package flow runs the routes of records: order per item, concurrency across
// items and pages, retries, and the watermark of what is durable.
package flow

import (
	"context"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice"
)

// Policy says what a flow does with a record that fails for good.
type Policy uint8

const (
	// Park hands it to the dead letters and goes on: the daemon's.
	Park Policy = iota
	// Stop starts no later record and lets what runs finish: Lambda's. Nothing
	// is retried but by the next invocation; a Permanent failure is parked
	// when there is a DeadLetter and else stops.
	Stop
)

// Order is the unit within which records run one after another.
type Order uint8

const (
	ByItem  Order = iota // records of one item
	ByShard              // all records of the flow
)

// DeadLetter makes a failed record durable elsewhere. The record is settled
// when Park returned nil; an error is retried.
type DeadLetter interface {
	Park(ctx context.Context, rec *sluice.Record, f sluice.Failure) error
}

// Options configure a Flow; the zero value is ready to use.
type Options struct {
	Concurrency int           // handlers running at once (default 64)
	Window      int           // unsettled records at most (default 4096)
	WindowBytes int64         // unsettled bytes at most (default 64 MiB); one record always fits
	MaxAhead    int           // records settled past the watermark at most (default 100,000)
	Order       Order         // default ByItem
	Policy      Policy        // default Park
	DeadLetter  DeadLetter    // nil: under Park a failed record holds its lane for good
	ParkItem    bool          // later changes of a parked item are parked behind it, in order
	MaxAge      time.Duration // of a failing record whose route sets none (default 20 h under Park, none under Stop)
	Margin      time.Duration // under Stop: start nothing later than this before ctx's deadline
	StuckAfter  time.Duration // a handler running longer is reported (default 1 min)
	Group       *Group        // state of the routes shared between flows (default: the flow's own)
	Hooks       Hooks
	Logger      *slog.Logger // default slog.Default()
}

// Result is how one route ended with a record.
type Result uint8

const (
	Done     Result = iota // nil
	Skipped                // sluice.Skip
	Retried                // failed; will be called again
	Parked                 // failed for good; in the dead letters
	Stopped                // failed under Stop
	Unrouted               // no route; Route is nil
)

// Hooks are called as things happen, from the goroutine that made them happen;
// nil ones are passed over. They must be fast and must not block.
type Hooks struct {
	// Handled is called after each call of a route's handler. route is nil for
	// Unrouted and for records that could not be decoded or matched.
	Handled func(rec *sluice.Record, route *sluice.Route, r Result, took time.Duration, err error)
	// Breaker is called when a route's breaker opens (an outage) or closes.
	Breaker func(route *sluice.Route, open bool, err error)
	// Stuck is called when a handler has been running for too long, and again
	// with returned set when it comes back.
	Stuck func(rec *sluice.Record, route *sluice.Route, since time.Duration, returned bool)
}

// Group holds what flows of one process share about their routes: breakers,
// concurrency and rate limits.
type Group struct{}

// NewGroup returns a Group for the routes of m.
func NewGroup(m sluice.Matcher) *Group { return &Group{} }

// Outages lists the routes whose breaker is open.
func (g *Group) Outages() []Outage { return nil }

// Outage is a route that fails for every record.
type Outage struct {
	Route string
	Since time.Time
	Err   error
}

// Held is an item whose lane waits for a retry or for a stuck handler.
type Held struct {
	KeyHash  uint64
	Route    string
	Attempts int
	Age      time.Duration // since the record was submitted
	Bytes    int64         // of the record and those waiting behind it
	Stuck    bool
	Err      error
}

// Flow runs records of one shard, or of one Lambda batch.
type Flow struct{}

// Open starts a flow. Cancelling ctx cancels the handlers' context and ends
// the flow: nothing is started any more and Close returns.
func Open(ctx context.Context, m sluice.Matcher, o Options) *Flow { return &Flow{} }

// Submit takes records in stream order; it blocks while the window is full and
// returns the ordinal of the last record taken (the first ever is 1). The flow
// keeps recs until they are settled. One goroutine at a time may submit.
func (f *Flow) Submit(ctx context.Context, recs ...sluice.Record) (last uint64, err error) {
	return 0, nil
}

// Settled returns how many records, counted from the first submitted, are
// durable without a gap.
func (f *Flow) Settled() uint64 { return 0 }

// Changed returns a channel that receives a value after Settled has grown; it
// is never closed. Signals coalesce.
func (f *Flow) Changed() <-chan struct{} { return nil }

// Close takes no more records, waits until all submitted ones are settled, or
// ctx ends, or under Stop until what runs has returned. It returns Settled and,
// when that is less than what was submitted, why.
func (f *Flow) Close(ctx context.Context) (settled uint64, err error) { return 0, nil }

// Idle returns a channel that is closed once the flow has ended and every
// handler it called has returned, also those that Close did not wait for.
func (f *Flow) Idle() <-chan struct{} { return nil }

// Held lists the items that wait, the oldest first.
func (f *Flow) Held() []Held { return nil }
