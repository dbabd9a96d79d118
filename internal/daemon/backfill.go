package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/snapshot"
)

// backfills read the daemon's tables, one after the other, once it is stored
// where the reading of their streams begins: what changes meanwhile comes by
// those.
type backfills struct {
	after  <-chan struct{}
	all    []*snapshot.Source
	logger *slog.Logger

	mu     sync.Mutex
	failed []string
}

// run returns when all backfills are over. A failed backfill ends nothing else:
// the daemon continues with changes, is not ready, and tries again at its next
// start.
func (b *backfills) run(ctx context.Context) {
	select {
	case <-b.after:
	case <-ctx.Done():
		return
	}
	for _, s := range b.all {
		if err := s.Run(ctx); err != nil {
			b.logger.Error("the backfill has ended before the table's end; the streams are read all the same", "table", s.Progress().Table, "error", err)
			b.mu.Lock()
			b.failed = append(b.failed, fmt.Sprintf("the backfill of table %q has ended before its end; start the daemon again when the cause is gone: %v", s.Progress().Table, err))
			b.mu.Unlock()
		} else if ctx.Err() != nil {
			return
		}
	}
}

func (b *backfills) unready() (reasons []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	reasons = append(reasons, b.failed...)
	for _, s := range b.all {
		reasons = append(reasons, s.Troubles()...)
	}
	return reasons
}

// held lists the items that wait, by table.
func (b *backfills) held() (all []holders.Item) {
	for _, s := range b.all {
		for _, h := range s.Held() {
			all = append(all, itemOf("backfill", s.Progress().Table, "", h))
		}
	}
	return all
}
