package poller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/state"
)

// slowKeeper is a keeper of gaps that takes its time.
type slowKeeper struct {
	*deadletter.Box
	takes time.Duration
}

func (k slowKeeper) ParkGap(ctx context.Context, g *sluice.Gap) error {
	if err := sleep(ctx, k.takes); err != nil {
		return err
	}
	return k.Box.ParkGap(ctx, g)
}

// Who acknowledges a gap waits for one that is being parked no longer than its
// context lasts.
func TestAcknowledgeGapsHasAContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := testOptions(state.NewMemory(), "orders").withDefaults()
		o.Flow.DeadLetter = slowKeeper{deadletter.NewBox(state.NewMemory(), "sluice"), 5 * time.Second}
		gs := newGaps(o, newStore(o, newHealth()))
		go gs.put(t.Context(), &sluice.Gap{Table: "orders", StreamARN: stubARN("orders"), ShardID: "a", Gone: true})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := gs.acknowledge(ctx, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		pass(5 * time.Second)
		if err := gs.acknowledge(t.Context(), gs.list()); err != nil || len(gs.list()) != 0 {
			t.Errorf("%d gaps left: %v", len(gs.list()), err)
		}
	})
}
