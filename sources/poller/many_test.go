//go:build integration || long

package poller

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
)

// TestStartOfManyShards holds the time until a thousand shards are all read to
// what the budgets of calls make it.
func TestStartOfManyShards(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	bubble(t, func(t *testing.T) {
		s := newStub()
		s.table("orders", crowd(s, "orders", 1000, 1, "")...)
		read := make(map[string]bool)
		var mu sync.Mutex
		began := time.Now()
		r := start(t, s, func(_ context.Context, rec *sluice.Record) error {
			mu.Lock()
			defer mu.Unlock()
			if read[rec.ShardID] = true; len(read) == 1 || len(read) == 1000 {
				t.Logf("%d are read after %v", len(read), time.Since(began))
			}
			return nil
		}, testOptions(state.NewMemory(), "orders"))
		pass(3 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(read) != 1000 {
			t.Errorf("%d of 1,000 shards are read after %v", len(read), time.Since(began))
		}
		r.stop()
	})
}
