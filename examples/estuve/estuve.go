// Package estuve keeps the counts of a map service, and deletes what belonged
// to a map or a user that is gone: users own maps, maps hold points, and a map
// can hold very many.
//
// Three tables, users, maps and points, have streams. A point that is written
// or deleted counts on its map and its user, a map on its user; nobody else
// writes those counters. A map that is deleted takes its points with it, a user
// the maps. A point that is written into a map that is gone goes, too.
//
// [NewRouter] is the whole of it; main runs it as a daemon, as the worker of a
// queue, and as a Lambda function.
package estuve

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/dynamo"
	"github.com/sluicehq/sluice/handlers/cascade"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/message"
	"github.com/sluicehq/sluice/router"
)

// Tables are the names of Estuve's tables.
type Tables struct{ Users, Maps, Points, Markers string }

// Named returns the tables whose names begin with a prefix.
func Named(prefix string) Tables {
	return Tables{Users: prefix + "users", Maps: prefix + "maps", Points: prefix + "points", Markers: prefix + "markers"}
}

// Streams are the tables whose streams are read.
func (t Tables) Streams() []string { return []string{t.Users, t.Maps, t.Points} }

// Keys are the names of each table's key attributes.
func (t Tables) Keys() map[string][]string {
	return map[string][]string{t.Users: userKey, t.Maps: mapKey, t.Points: pointKey, t.Markers: {"pk"}}
}

var (
	userKey  = []string{"user_id"}
	mapKey   = []string{"user_id", "map_id"}
	pointKey = []string{"map_id", "point_id"}
)

// Store is what the routes ask of the tables; a sinks/dynamodb.Store is one.
type Store interface {
	Get(ctx context.Context, table string, key sluice.Item) (sluice.Item, error)
	Query(ctx context.Context, q dynamo.Query) (dynamo.Page, error)
	Once(ctx context.Context, u dynamo.Unit) (dynamo.Applied, error)
	Write(ctx context.Context, op dynamo.Op) error
	Transact(ctx context.Context, ops ...dynamo.Op) error
	DeleteAll(ctx context.Context, table string, keys []sluice.Item) []error
}

// Deps is what the routes work on.
type Deps struct {
	Tables Tables
	Store  Store

	// Send sends the messages of large cascades; nil does without a queue, and
	// deletes whatever there is while the record waits.
	Send      message.Send
	Threshold int // rows that a record deletes itself; see [cascade.Config]

	Now    func() time.Time // default time.Now
	Hooks  cascade.Hooks
	Logger *slog.Logger // default slog.Default()
}

// app has the handlers.
type app struct {
	d            Deps
	points, maps *rollup.Rollup
}

// NewRouter returns Estuve's routes. Each can be repeated, so that they take
// redriven records.
func NewRouter(d Deps, opts ...router.RouterOption) (*router.Router, error) {
	a, err := newApp(d)
	if err != nil {
		return nil, fmt.Errorf("estuve: %w", err)
	}
	cascades, err := NewCascades(d)
	if err != nil {
		return nil, fmt.Errorf("estuve: %w", err)
	}
	r := router.New(append([]router.RouterOption{router.TypeFrom(router.Table(map[string]string{
		d.Tables.Users: "user", d.Tables.Maps: "map", d.Tables.Points: "point",
	}))}, opts...)...)
	r.Handle("map#INSERT map#REMOVE", a.maps.Handle, router.Name("count maps"), router.NeedsBoth(), router.Redrive())
	r.Handle("point#INSERT", a.pointInserted, router.Name("count points"), router.NeedsNew(), router.Redrive())
	r.Handle("point#REMOVE", a.points.Handle, router.Name("discount points"), router.NeedsOld(), router.Redrive())
	r.Handle("map#REMOVE", cascades.Maps.Remove, router.Name("delete points"), router.Redrive())
	r.Handle("user#REMOVE", cascades.Users.Remove, router.Name("delete maps"), router.Redrive())
	if d.Send != nil {
		work, err := cascade.Worker(cascades.Users, cascades.Maps)
		if err != nil {
			return nil, fmt.Errorf("estuve: %w", err)
		}
		r.Handle(cascade.Kind+"#MESSAGE", work, router.Name("cascade"))
	}
	return r, nil
}

func newApp(d Deps) (*app, error) {
	a := &app{d: d}
	var err error
	a.points, err = rollup.New(rollup.Config{
		Name: "estuve.points",
		Counts: []rollup.Count{
			{Table: d.Tables.Maps, Attribute: "num_points", Key: rollup.By(mapKey...)},
			{Table: d.Tables.Users, Attribute: "num_points", Key: rollup.By(userKey...)},
		},
		Once: d.Store.Once, Markers: d.Tables.Markers, Now: d.Now,
	})
	if err != nil {
		return nil, err
	}
	a.maps, err = rollup.New(rollup.Config{
		Name:   "estuve.maps",
		Counts: []rollup.Count{{Table: d.Tables.Users, Attribute: "num_maps", Key: rollup.By(userKey...)}},
		Once:   d.Store.Once, Markers: d.Tables.Markers, Now: d.Now,
	})
	return a, err
}

// Cascades are what goes with a user and with a map.
type Cascades struct{ Users, Maps *cascade.Cascade }

// NewCascades returns the cascades alone, such as for a dry run.
func NewCascades(d Deps) (c Cascades, err error) {
	base := cascade.Config{
		Get: d.Store.Get, Query: d.Store.Query, DeleteAll: d.Store.DeleteAll,
		Send: d.Send, Threshold: d.Threshold, Hooks: d.Hooks, Logger: d.Logger,
	}
	if d.Send == nil {
		base.Threshold = cascade.Unlimited
	}
	users := base
	users.Table, users.Key = d.Tables.Users, userKey
	users.Children = []cascade.Child{{Table: d.Tables.Maps, Key: mapKey, Partition: cascade.Attr{Name: "user_id", From: "user_id"}}}
	if c.Users, err = cascade.New(users); err != nil {
		return c, err
	}
	maps := base
	maps.Table, maps.Key = d.Tables.Maps, mapKey
	maps.Children = []cascade.Child{{Table: d.Tables.Points, Key: pointKey, Partition: cascade.Attr{Name: "map_id", From: "map_id"}}}
	c.Maps, err = cascade.New(maps)
	return c, err
}

// pointInserted counts a point. One whose map is not there is counted on its
// user and then deleted: the record of that takes it off again. So what a point
// adds and what its end takes away is the same, whatever happens to its map.
//
// Whether the map is there is what the counting finds, in one transaction; only
// when that was done before, and its answer is lost, is the map looked for.
func (a *app) pointInserted(ctx context.Context, rec *sluice.Record) error {
	parent := rec.New.Only(mapKey...)
	if parent.Len() != len(mapKey) {
		return sluice.Permanent(fmt.Errorf("point %s has no user_id: it belongs to no map", rec.Keys.Raw()))
	}
	applied, err := a.points.Apply(ctx, rec)
	if err != nil {
		return err
	}
	if applied.Before {
		m, err := a.d.Store.Get(ctx, a.d.Tables.Maps, parent)
		if err != nil {
			return err
		}
		if m.Exists() {
			return sluice.Skip("counted before")
		}
		return a.deleteOrphan(ctx, rec.Keys, parent)
	}
	if slices.ContainsFunc(applied.Dropped, func(add dynamo.Add) bool { return add.Table == a.d.Tables.Maps }) {
		return a.deleteOrphan(ctx, rec.Keys, parent)
	}
	return nil
}

// deleteOrphan deletes a point as long as its map is not there: both may have
// been written again by now.
func (a *app) deleteOrphan(ctx context.Context, point, parent sluice.Item) error {
	err := a.d.Store.Transact(ctx,
		dynamo.Check(a.d.Tables.Maps, parent, "attribute_not_exists(map_id)"),
		dynamo.Delete(a.d.Tables.Points, point))
	if dynamo.IsCondition(err) {
		return sluice.Skip("map exists again")
	}
	return err
}
