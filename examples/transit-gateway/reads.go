package transitgateway

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

// Gateway returns a gateway; false when there is none.
func (g *Gateways) Gateway(ctx context.Context, ownerID, id string) (w Gateway, found bool, err error) {
	it, err := g.store.Get(ctx, g.table("tgw"), gatewayKey(ownerID, id))
	if err != nil || !it.Exists() {
		return w, false, err
	}
	w, err = decode[Gateway](it)
	return w, err == nil, err
}

// OfOwner returns all gateways of an owner, in the order of their IDs.
func (g *Gateways) OfOwner(ctx context.Context, ownerID string) ([]Gateway, error) {
	var all []Gateway
	q := dynamo.Query{Table: g.table("tgw"), Partition: item.String("owner_id", ownerID)}
	for it, err := range dynamo.All(ctx, g.store.Query, q) {
		if err != nil {
			return nil, err
		}
		w, err := decode[Gateway](it)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

// Page says which gateways of an owner are wanted.
type Page struct {
	From, To string // IDs, both included; "" is no bound
	Limit    int    // of one page; 0 is as many as the service puts into one
	After    string // next of the page before; "" is the beginning
}

// Range returns a page of an owner's gateways ordered by ID, and where the next
// one begins: "" after the last. Gateways that are added or deleted meanwhile do
// not repeat or hide others.
func (g *Gateways) Range(ctx context.Context, ownerID string, p Page) (all []Gateway, next string, err error) {
	q := dynamo.Query{Table: g.table("tgw"), Partition: item.String("owner_id", ownerID)}
	from, to := item.String("tgw_id", p.From), item.String("tgw_id", p.To)
	switch {
	case p.From != "" && p.To != "":
		if p.From > p.To {
			return nil, "", nil // DynamoDB would refuse it
		}
		q.Sort = dynamo.Between(from, to)
	case p.From != "":
		q.Sort = dynamo.Sort{Op: ">=", Key: from}
	case p.To != "":
		q.Sort = dynamo.Sort{Op: "<=", Key: to}
	}
	if p.Limit > 0 {
		q.Limit = p.Limit + 1 // DynamoDB ends a full page without knowing whether another follows
	}
	if p.After != "" {
		q.After = gatewayKey(ownerID, p.After)
	}
	page, err := g.store.Query(ctx, q)
	if err != nil {
		return nil, "", err
	}
	if p.Limit > 0 && len(page.Items) > p.Limit {
		page.Items = page.Items[:p.Limit]
		page.Next = page.Items[p.Limit-1]
	}
	for _, it := range page.Items {
		w, err := decode[Gateway](it)
		if err != nil {
			return nil, "", err
		}
		all = append(all, w)
	}
	return all, kit.Text(page.Next, "tgw_id"), nil
}

// OfRouteTable returns the gateways that are attached to a route table, ordered by
// ID. It finds candidates in rows that follow the gateways by the lag of the
// stream. It reads each again, so that it returns no detached gateway.
func (g *Gateways) OfRouteTable(ctx context.Context, rtb string) ([]Gateway, error) {
	var all []Gateway
	q := dynamo.Query{Table: g.table("tgw_by_rtb"), Partition: item.String("rtb_id", rtb)}
	for it, err := range dynamo.All(ctx, g.store.Query, q) {
		if err != nil {
			return nil, err
		}
		row, err := decode[inverseRow](it)
		if err != nil {
			return nil, err
		}
		if row.Deleted {
			continue
		}
		w, found, err := g.Gateway(ctx, row.OwnerID, row.ID)
		if err != nil {
			return nil, err
		}
		if found && slices.Contains(w.RouteTables, rtb) {
			all = append(all, w)
		}
	}
	return all, nil
}

func decode[T any](it sluice.Item) (v T, err error) {
	if err := it.Decode(&v); err != nil {
		return v, fmt.Errorf("an item of %s: %w", kit.Text(it, "tgw_id"), err)
	}
	return v, nil
}
