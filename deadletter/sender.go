package deadletter

import (
	"context"
	"time"

	"github.com/sluicehq/sluice"
)

// Sender parks entries where they can only be sent: a queue, a topic. It returns
// nil once data, which [Parse] reads, is durable there. It runs concurrently, and
// again for the same entry after a restart.
type Sender func(ctx context.Context, e Entry, data []byte) error

// Park sends the failure of rec. Flows call it.
func (s Sender) Park(ctx context.Context, rec *sluice.Record, f sluice.Failure) error {
	return s.send(ctx, newEntry(rec, f, time.Now()))
}

func (s Sender) send(ctx context.Context, e Entry) error {
	data, err := e.Append(nil)
	if err != nil {
		return err
	}
	return s(ctx, e, data)
}
