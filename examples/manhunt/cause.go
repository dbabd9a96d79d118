package manhunt

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehq/sluice"
)

type causeKey struct{}

// causedAt is the time of the record that a handler runs for, or zero: what it
// writes as the time of something. A clock would say another time whenever the
// record is handled again.
func causedAt(ctx context.Context) time.Time {
	at, _ := ctx.Value(causeKey{}).(time.Time)
	return at
}

// caused is a middleware that lets causedAt know. A message was due at its
// notBefore; a change of the table, and any other message, has a time of its own.
func caused(next sluice.Handler) sluice.Handler {
	return func(ctx context.Context, rec *sluice.Record) error {
		at := rec.Created
		if rec.EventName == sluice.Delivery {
			if due, err := time.Parse(time.RFC3339, attribute(rec.New, "notBefore")); err == nil {
				at = due
			}
		}
		err := next(context.WithValue(ctx, causeKey{}, at), rec)
		if r, ok := errors.AsType[*sluice.Remaining](err); ok {
			return &sluice.Remaining{Rest: caused(r.Rest), Err: r.Err, After: r.After}
		}
		return err
	}
}
