package estuve

import (
	"context"
	"iter"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/item"
)

// Recounter repairs the counters of users and of their maps.
type Recounter struct {
	Tables Tables
	Store  Store
	Settle time.Duration // see [rollup.Recount]
	DryRun bool

	MaxDeletes  int // of each kind of counter; see [rollup.Recount]
	TrustTables bool
	Found       func(rollup.Correction)
}

// Run recounts users. It is not for users of whom a large map is being deleted:
// points of a map that is gone are not found, and a cascade that waits would
// take them off once more. It returns what became of all their counters: two of each
// user, and one of each map.
func (r Recounter) Run(ctx context.Context, users iter.Seq[string]) (all rollup.Recounted, err error) {
	keys := func(yield func(sluice.Item, error) bool) {
		for id := range users {
			if !yield(item.Of(item.String("user_id", id)), nil) {
				return
			}
		}
	}
	base := rollup.Recount{Name: pointsName, Get: r.Store.Get, Transact: r.Store.Transact, Markers: r.Tables.Markers, Settle: r.Settle, DryRun: r.DryRun, MaxDeletes: r.MaxDeletes, TrustTables: r.TrustTables, Found: r.Found}
	ofMaps := base
	ofMaps.Table, ofMaps.Keys, ofMaps.Attribute, ofMaps.Children = r.Tables.Maps, mapKey, "num_points", r.points
	maps := base
	maps.Name = mapsName
	maps.Table, maps.Keys, maps.Attribute, maps.Children = r.Tables.Users, userKey, "num_maps", r.maps
	ofUsers := base
	ofUsers.Table, ofUsers.Keys, ofUsers.Attribute, ofUsers.Children = r.Tables.Users, userKey, "num_points", r.pointsOfUser
	for _, c := range []struct {
		recount rollup.Recount
		parents iter.Seq2[sluice.Item, error]
	}{
		{ofMaps, r.each(ctx, keys, r.maps)},
		{maps, keys},
		{ofUsers, keys},
	} {
		done, err := c.recount.Run(ctx, c.parents)
		all.Parents += done.Parents
		all.Right += done.Right
		all.Settled += done.Settled
		all.Corrected += done.Corrected
		all.Busy += done.Busy
		all.Gone += done.Gone
		all.Held += done.Held
		all.Failed += done.Failed
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// maps reads the keys of a user's maps.
func (r Recounter) maps(ctx context.Context, user sluice.Item) iter.Seq2[sluice.Item, error] {
	return dynamo.All(ctx, r.Store.Query, dynamo.Query{Table: r.Tables.Maps, Partition: partition(user, "user_id"), Attributes: mapKey})
}

// points reads the points of a map, as far as counting goes: those of its user.
// One that somebody else wrote there belongs to no map, and is about to go.
func (r Recounter) points(ctx context.Context, m sluice.Item) iter.Seq2[sluice.Item, error] {
	owner, _ := m.Lookup("user_id")
	all := dynamo.All(ctx, r.Store.Query, dynamo.Query{Table: r.Tables.Points, Partition: partition(m, "map_id"), Attributes: append([]string{"user_id"}, pointKey...)})
	return func(yield func(sluice.Item, error) bool) {
		for p, err := range all {
			if by, _ := p.Lookup("user_id"); err == nil && !by.Equal(owner) {
				continue
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

// pointsOfUser reads the points of all maps of a user.
func (r Recounter) pointsOfUser(ctx context.Context, user sluice.Item) iter.Seq2[sluice.Item, error] {
	return r.each(ctx, r.maps(ctx, user), r.points)
}

// each reads the children of each parent.
func (r Recounter) each(ctx context.Context, parents iter.Seq2[sluice.Item, error], children func(context.Context, sluice.Item) iter.Seq2[sluice.Item, error]) iter.Seq2[sluice.Item, error] {
	return func(yield func(sluice.Item, error) bool) {
		for parent, err := range parents {
			if err != nil {
				yield(parent, err)
				return
			}
			for child, err := range children(ctx, parent) {
				if !yield(child, err) {
					return
				}
			}
		}
	}
}

func partition(it sluice.Item, name string) item.Attribute {
	v, _ := it.Lookup(name)
	return item.String(name, v.Str())
}
