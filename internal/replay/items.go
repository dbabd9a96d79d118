package replay

import (
	"context"
	"sync"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
)

// Items is the items with a failed change, by route: later changes are kept behind
// it. The zero value is empty. It is safe for concurrent use.
type Items struct {
	mu     sync.Mutex
	failed map[itemRoute]bool
}

type itemRoute struct {
	table, route string // no route: all
	keys         uint64 // hash
}

func (it *Items) add(rec *sluice.Record, route string) {
	if !rec.Keys.Exists() { // its item is unknown
		return
	}
	it.mu.Lock()
	defer it.mu.Unlock()
	if it.failed == nil {
		it.failed = make(map[itemRoute]bool)
	}
	it.failed[itemRoute{rec.Table, route, rec.Keys.Hash()}] = true
}

func (it *Items) have(rec *sluice.Record, route string) bool {
	if !rec.Keys.Exists() {
		return false
	}
	keys := rec.Keys.Hash()
	it.mu.Lock()
	defer it.mu.Unlock()
	return it.failed[itemRoute{rec.Table, route, keys}] || it.failed[itemRoute{rec.Table, "", keys}]
}

// holding is a DeadLetter that makes flows keep later changes behind a parked one.
type holding struct {
	flow.DeadLetter
	items *Items
}

func (h holding) Park(ctx context.Context, rec *sluice.Record, f sluice.Failure) error {
	err := h.DeadLetter.Park(ctx, rec, f)
	if err == nil {
		h.items.add(rec, f.Route)
	}
	return err
}

// Holds is for [flow.Options.ParkItem].
func (h holding) Holds(_ context.Context, rec *sluice.Record, route string) (bool, error) {
	return h.items.have(rec, route), nil
}
