package manhunt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

// malformedMethods is the attribute of a search that has the reasons by the methods' ids.
const malformedMethods = "malformedMethods"

// noteMalformed records on a search which methods it skips because they are
// malformed. It is a separate route, so that a failure to record does not stop the
// search.
func (a *app) noteMalformed(ctx context.Context, rec *sluice.Record) error {
	id := attribute(rec.Keys, "PK")
	it, err := a.table.get(ctx, id, "search", "search")
	if err != nil {
		return err
	}
	switch {
	case attribute(it, "status") == Active:
	case attribute(it, resolution) == noContactMethods, attribute(it, resolution) == badMethods: // just now, perhaps
	default:
		return sluice.Skip("search is over")
	}
	partition, err := a.table.partition(ctx, attribute(it, "contactId"))
	if err != nil {
		return fmt.Errorf("reading the methods for search %s: %w", Named(it), err)
	}
	was, _ := it.Lookup(malformedMethods)
	all := was.Map()
	if !all.Exists() {
		all = item.Of()
	}
	for _, method := range partition {
		if why := malformedMethod(method); why != "" {
			all = all.With(item.String(attribute(method, "SK"), why))
		}
	}
	if all.Len() == 0 || all.Equal(was.Map()) {
		return sluice.Skip("no malformed method")
	}
	op := kit.Set(dynamo.Update(a.d.Table, key(id, "search"), ""), map[string]any{malformedMethods: all})
	written, err := a.table.write(ctx, kit.Same(op, it, "entityType", malformedMethods))
	if err == nil && !written { // it is read anew
		return errors.New("noting malformed methods: another record did so just now, or the search was removed")
	}
	return err
}

// malformedMethod returns why a method is skipped; "" for a valid or disabled
// method.
func malformedMethod(it sluice.Item) string {
	if attribute(it, "entityType") != "contactMethod" {
		return ""
	}
	enabled, _ := it.Lookup("enabled")
	if enabled.Kind() != item.BOOL {
		return "enabled is missing, or neither true nor false"
	}
	order, _ := it.Lookup("order")
	wait, _ := it.Lookup("waitSeconds")
	_, ordered := order.Int64()
	seconds, waits := wait.Int64()
	switch {
	case !enabled.Bool():
		return ""
	case !ordered:
		return "order is missing, or no whole number"
	case !waits || seconds < 0 || seconds > math.MaxInt64/int64(time.Second):
		return "waitSeconds is missing, or no number of seconds from 0"
	}
	return ""
}
