package tabletest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/effect/dynamo"
)

// Once applies a unit, unless its marker exists. It is for a world without
// concurrency: its reads and the following transaction are not atomic.
func (db *DB) Once(ctx context.Context, u dynamo.Unit) (a dynamo.Applied, err error) {
	marker, err := db.Get(ctx, u.Marker.Table, u.Marker.Item)
	if err != nil || marker.Exists() {
		return dynamo.Applied{Before: marker.Exists()}, err
	}
	ops := append([]dynamo.Op{dynamo.Put(u.Marker.Table, u.Marker.Item).If("attribute_not_exists(pk)")}, u.Ops...)
	for i, add := range u.Adds {
		it, err := db.Get(ctx, add.Table, add.Key)
		if err != nil {
			return a, err
		}
		if !it.Exists() && !add.Create {
			a.Dropped = append(a.Dropped, i)
			if add.Else.Kind != 0 {
				ops = append(ops, add.Else)
			}
			continue
		}
		op := dynamo.Update(add.Table, add.Key, "")
		for _, name := range slices.Sorted(maps.Keys(add.By)) {
			i := len(op.Names)
			op.Update += fmt.Sprintf(", #n%d :n%d", i, i)
			op = op.Name(fmt.Sprintf("#n%d", i), name).Value(fmt.Sprintf(":n%d", i), add.By[name])
		}
		op.Update = "ADD " + strings.TrimPrefix(op.Update, ", ")
		ops = append(ops, op)
	}
	return a, db.Transact(ctx, ops...)
}
