package transitgateway

import (
	"context"
	"slices"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

// Gateway returns a gateway; false when there is none.
func (g *Gateways) Gateway(ctx context.Context, ownerID, id string) (w Gateway, found bool, err error) {
	return kit.One[Gateway](ctx, g.store, g.table("tgw"), gatewayKey(ownerID, id))
}

// OfOwner returns all gateways of an owner, in the order of their IDs.
func (g *Gateways) OfOwner(ctx context.Context, ownerID string) ([]Gateway, error) {
	return kit.All[Gateway](ctx, g.store, dynamo.Query{Table: g.table("tgw"), Partition: item.String("owner_id", ownerID)})
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
	if p.After != "" {
		q.After = gatewayKey(ownerID, p.After)
	}
	all, last, err := kit.Page[Gateway](ctx, g.store, q, p.Limit)
	return all, kit.Text(last, "tgw_id"), err
}

// OfRouteTable returns the gateways that are attached to a route table, ordered by
// ID. It finds candidates in rows that follow the gateways by the lag of the
// stream. It reads each again, so that it returns no detached gateway.
func (g *Gateways) OfRouteTable(ctx context.Context, rtb string) ([]Gateway, error) {
	var all []Gateway
	q := dynamo.Query{Table: g.table("tgw_by_rtb"), Partition: item.String("rtb_id", rtb)}
	for row, err := range kit.Rows[inverseRow](ctx, g.store, q) {
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
