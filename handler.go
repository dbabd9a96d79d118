package sluice

import (
	"context"
	"time"
)

// Handler handles one record. nil means that its effects are durable; see the
// outcomes [Skip], [RetryAfter], [Overloaded], [Permanent] and [Remaining] for what else it
// can say. A plain error means: try again.
//
// Handlers of different items run concurrently. Handlers of one item run one
// after another in the order of the item's changes. A handler may be called
// again with a record that it has already handled.
type Handler func(ctx context.Context, rec *Record) error

// Middleware wraps a Handler.
type Middleware func(Handler) Handler

// Route is one handler with the limits under which a flow runs it. Routers
// make them; flows keep state per Route, so that a Route is never copied and
// never changed after its first use.
type Route struct {
	Name    string
	Index   int     // position among the Matcher's Routes
	Handler Handler // middleware applied

	// Attempts is how often a record fails at least before it is parked as poison
	// (default 8). Only plain errors count, and only while the route works for
	// other items, for at least PoisonAfter. While more than a few items fail,
	// nothing is poison: that is an outage, or a partial one.
	Attempts    int
	PoisonAfter time.Duration // default 10 min
	Backoff     time.Duration // delay before the first retry, doubled each time, full jitter (default 100 ms)
	MaxBackoff  time.Duration // cap of the doubled delay (default 30 s)
	Timeout     time.Duration // of one call of Handler; 0 is none
	MaxAge      time.Duration // a failing record older than this is parked, in an outage, too (default 20 h in the daemon, none under Lambda)

	Concurrency int     // calls at a time over the whole process; 0 is no limit of its own
	Rate        float64 // calls started a second over the whole process; 0 is no limit
	Burst       int     // of Rate (default 1)

	// Needs is what it takes of a record besides its keys to match the route
	// and to handle it. A source that knows the view of its stream refuses one
	// that has less at the start; the Matcher refuses single records.
	Needs View

	// Redrive lets the route receive records from the dead letters although
	// later changes of the item may have been handled since.
	Redrive bool

	// Snapshot says that the route takes the records of a backfill. A backfill
	// for which there is no such route is refused at its start.
	Snapshot bool
}

// Matcher says which routes a record takes; a router is one.
type Matcher interface {
	// Match appends to dst the routes that rec takes, in the order in which
	// they run, and returns the extended slice. None means that the record is
	// settled as unrouted. An error is the record's own; it is not retried.
	// It must be safe for concurrent use.
	Match(dst []*Route, rec *Record) ([]*Route, error)

	// Routes lists every route, each at its Index. The list does not change
	// once Match has been called.
	Routes() []*Route
}

// Failure says why and where a record is parked as a dead letter.
type Failure struct {
	Route    string // empty when the record could not be decoded or matched
	Attempts int    // calls of the route's handler for this record by this process
	First    error
	Last     error
	FirstAt  time.Time
	LastAt   time.Time
}
