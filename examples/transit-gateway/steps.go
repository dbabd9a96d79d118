package transitgateway

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

// SaveNewInSteps creates a gateway without a transaction: it increments the
// counter for an ID, claims the name, and puts the gateway. It sets ID, Version
// and CreatedAt.
//
// A process that dies on the way need not undo anything. Its number is lost, and a
// claim without a gateway is released after [CheckAfter]. So all steps together
// have half of that time.
func (g *Gateways) SaveNewInSteps(ctx context.Context, w *Gateway) error {
	ctx, cancel := context.WithTimeout(ctx, CheckAfter/2)
	defer cancel()
	saved := *w
	var err error
	if saved.ID, err = g.nextID(ctx); err != nil {
		return fmt.Errorf("creating a gateway of %s: %w", w.OwnerID, err)
	}
	saved.Version, saved.CreatedAt = 0, g.now().UnixMilli()
	if err := saved.validate(); err != nil {
		return err
	}
	if err := g.store.Write(ctx, g.claim(saved.OwnerID, saved.Name, saved.ID)); err != nil {
		return saved.refused("naming", err, ErrNameTaken)
	}
	if err := g.store.Write(ctx, g.putNew(saved)); err != nil {
		return saved.refused("creating", err)
	}
	*w = saved
	return nil
}

// nextID returns an ID that no other call returns.
func (g *Gateways) nextID(ctx context.Context) (string, error) {
	last := item.Of(item.String("id", "#last"))
	for {
		it, err := g.store.Get(ctx, g.table("tgw_id"), last)
		if err != nil {
			return "", err
		}
		n, counted := kit.Number(it, "counter")
		if _, there := it.Lookup("counter"); there && !counted { // to begin anew would give out IDs twice
			return "", fmt.Errorf("table %s: counter of the item #last is no whole number: set it to the greatest ID given out", g.table("tgw_id"))
		}
		op := kit.Set(dynamo.Update(g.table("tgw_id"), last, ""), map[string]any{"counter": n + 1})
		if err := g.store.Write(ctx, kit.Same(op, it, "counter")); !dynamo.IsCondition(err) {
			return fmt.Sprintf("tgw-%017x", n+1), err
		}
	}
}
