package sluice

import (
	"context"
	"time"

	"github.com/sluicehq/sluice/item"
)

// Handler handles one record. nil means that its effects are durable. A plain
// error asks for a retry. The other outcomes are [Skip], [RetryAfter],
// [Overloaded], [Permanent] and [Remaining].
//
// Handlers of different items run concurrently. Handlers of one item run one after
// another, in the order of the item's changes. A record may be handled more than
// once.
type Handler func(ctx context.Context, rec *Record) error

// Middleware wraps a Handler.
type Middleware func(Handler) Handler

// Route is one handler with its limits. Routers make Routes. A flow keeps state
// per Route: never copy or change a Route after its first use.
type Route struct {
	Name    string
	Index   int     // position among the Matcher's Routes
	Handler Handler // middleware applied

	// Attempts is the least number of failures before a record is poison and is
	// parked (default 8). Only plain errors count, and only while the route
	// works for other items. The record must also fail for PoisonAfter. No
	// record is poison while more than a few items fail: that is an outage, or
	// a partial one.
	Attempts    int
	PoisonAfter time.Duration // default 10 min
	Backoff     time.Duration // delay before the first retry, doubled each time, full jitter (default 100 ms)
	MaxBackoff  time.Duration // cap of the doubled delay (default 30 s)
	Timeout     time.Duration // of one call of Handler; 0 is no limit
	MaxAge      time.Duration // a failing record older than this is parked, even in an outage (default 20 h in the daemon, none under Lambda)

	Concurrency int     // calls at a time in the process; 0 is no limit
	Rate        float64 // calls started per second in the process; 0 is no limit
	Burst       int     // of Rate (default 1)

	// Needs is the images that the route needs to match and handle a record. A
	// source refuses to start on a stream whose view has less. The Matcher
	// refuses single records that have less.
	Needs item.View

	// Redrive lets the route receive redriven dead letters. Later changes of
	// the same item may already be handled.
	Redrive bool

	// Snapshot lets the route receive backfill records. A backfill does not
	// start unless a route has Snapshot.
	Snapshot bool
}

// Matcher selects the routes of a record. A router is a Matcher.
type Matcher interface {
	// Match appends the routes of rec to dst, in the order in which they run,
	// and returns the extended slice. A record without routes is settled as
	// unrouted. An error is permanent for rec. Match must be safe for
	// concurrent use.
	Match(dst []*Route, rec *Record) ([]*Route, error)

	// Routes lists every route, each at its Index. The list is fixed once Match
	// was called.
	Routes() []*Route
}

// Failure says why a record is parked as a dead letter, and in which route.
type Failure struct {
	Route    string // empty when the record could not be decoded or matched
	Attempts int    // calls of the handler for this record in this process
	First    error
	Last     error
	FirstAt  time.Time
	LastAt   time.Time
}
