// Package routed lets a handler ask whether its route takes an item as it is now. A
// record that comes late was routed by its own images, which may be days old.
package routed

import (
	"context"
	"time"

	"github.com/sluicehq/sluice"
)

// liveFor is how long a stream holds a record.
const liveFor = 24 * time.Hour

// Late reports whether rec is not live: it is redriven, replayed or backfilled, or
// it was held for longer than its stream keeps records, in an outage or while the
// process was suspended.
func Late(rec *sluice.Record) bool {
	return rec.Origin != sluice.Live || !rec.Created.IsZero() && time.Since(rec.Created) > liveFor
}

// Takes reports whether a route takes the item of a record as it is now.
type Takes func(rec *sluice.Record, now sluice.Item) (bool, error)

type key struct{}

// With returns a context that carries t to the handler.
func With(ctx context.Context, t Takes) context.Context { return context.WithValue(ctx, key{}, t) }

// From returns the router's Takes, or nil for a handler without a router.
func From(ctx context.Context) Takes {
	t, _ := ctx.Value(key{}).(Takes)
	return t
}
