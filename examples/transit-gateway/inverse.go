package transitgateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

// tombstoneLife is how long a tombstone remembers the last state of a row. It is
// longer than a record can take.
const tombstoneLife = 7 * 24 * time.Hour

// onRouteTables writes a row for each route table that a gateway was attached
// to, and a tombstone in the place of the row where it no longer is. Each
// carries the fence of the state that says so, and gives way to later ones only.
func (g *Gateways) onRouteTables(ctx context.Context, rec *sluice.Record) error {
	image := rec.New
	if rec.EventName == sluice.Remove {
		image = rec.Old
	}
	fence, err := Fence(image)
	if err != nil {
		return sluice.Permanent(err)
	}
	if rec.EventName == sluice.Remove {
		fence++
	}
	before, err := routeTables(rec.Old)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("old image: %w", err))
	}
	now, err := routeTables(rec.New)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("new image: %w", err))
	}
	row := inverseRow{OwnerID: kit.Text(rec.Keys, "owner_id"), ID: kit.Text(rec.Keys, "tgw_id"), fence: fence}
	for _, rtb := range now {
		if !slices.Contains(before, rtb) {
			if err := g.putInverse(ctx, row.of(rtb)); err != nil {
				return err
			}
		}
	}
	for _, rtb := range before {
		if !slices.Contains(now, rtb) {
			if err := g.putInverse(ctx, row.of(rtb).With(tombstone(g.now())...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// inverseRow says that a gateway is, or was, attached to a route table.
type inverseRow struct {
	OwnerID string `dynamodbav:"owner_id"`
	ID      string `dynamodbav:"tgw_id"`
	Deleted bool   `dynamodbav:"deleted"`
	fence   int64
}

func (r inverseRow) of(rtb string) sluice.Item {
	return item.Of(item.String("rtb_id", rtb), item.String("tgw_id", r.ID), item.String("owner_id", r.OwnerID),
		item.Number("src_version", strconv.FormatInt(r.fence, 10)))
}

func tombstone(now time.Time) []item.Attribute {
	return []item.Attribute{item.Bool("deleted", true), expiry(now)}
}

// expiry is the time-to-live attribute of a tombstone.
func expiry(now time.Time) item.Attribute {
	return item.Number("ttl", strconv.FormatInt(now.Add(tombstoneLife).Unix(), 10))
}

func (g *Gateways) putInverse(ctx context.Context, row sluice.Item) error {
	fence, _ := row.Lookup("src_version")
	err := g.store.Write(ctx, dynamo.Put(g.table("tgw_by_rtb"), row).
		If("attribute_not_exists(src_version) OR src_version < :fence").Value(":fence", fence))
	if dynamo.IsCondition(err) {
		return nil // the stored state is the same, or later
	}
	return err
}

// routeTables returns the route tables in an image; none for an absent one.
func routeTables(it sluice.Item) (ids []string, err error) {
	v, ok := it.Lookup("route_table_ids")
	if !ok {
		return nil, nil
	}
	if v.Kind() != item.L {
		return nil, errors.New("route_table_ids is no list")
	}
	for id := range v.List() {
		if id.Kind() != item.S || id.Str() == "" {
			return nil, errors.New("route_table_ids contains an invalid id")
		}
		ids = append(ids, id.Str())
	}
	return ids, nil
}
