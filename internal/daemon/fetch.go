package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/reread"
)

// Fetch reads again what dead letters have by reference, with the configuration
// of DynamoDB: the record from its stream, or the item as it is now.
func Fetch(cfg aws.Config) deadletter.Fetch {
	r := reread.New(cfg)
	return func(ctx context.Context, e *deadletter.Entry) (*sluice.Record, error) {
		var forgotten error
		if e.EventName != sluice.Snapshot {
			rec, err := r.Record(ctx, e.StreamARN, e.ShardID, e.Sequence, e.EventID)
			if err == nil || !errors.Is(err, reread.ErrTrimmed) {
				return rec, err
			}
			forgotten = err
		}
		rec, err := r.Item(ctx, e.StreamARN, e.Ref.Keys)
		if errors.Is(err, reread.ErrNoItem) {
			return nil, fmt.Errorf("%w: %w", deadletter.ErrGone, errors.Join(forgotten, err))
		}
		if err == nil {
			// The item is no older than the change. Written as a backfill
			// record, it would lose to the changes that it should follow.
			rec.Sequence = e.Sequence
		}
		return rec, err
	}
}
