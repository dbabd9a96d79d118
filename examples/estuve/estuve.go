// Package estuve keeps the counts of a map service, and deletes the children of a
// deleted map or user: users own maps, maps hold points, and a map can hold very
// many.
//
// Three tables, users, maps and points, have streams. A written or deleted point
// counts on its map and its user, a map on its user; nobody else writes those
// counters. A deleted map takes its points with it, and a user its maps. A point
// that is written into a deleted map is deleted too.
//
// [NewRouter] makes all routes; main runs them as a daemon, as the worker of a
// queue, and as a Lambda function.
package estuve

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/handlers/cascade"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/metrics"
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

// Store is the access of the routes to the tables, such as sinks/dynamodb.Store.
type Store interface {
	Get(ctx context.Context, table string, key sluice.Item) (sluice.Item, error)
	Query(ctx context.Context, q dynamo.Query) (dynamo.Page, error)
	Once(ctx context.Context, u dynamo.Unit) (dynamo.Applied, error)
	Write(ctx context.Context, op dynamo.Op) error
	Transact(ctx context.Context, ops ...dynamo.Op) error
	DeleteGuarded(ctx context.Context, d dynamo.GuardedDelete)
}

// Deps are the dependencies of the routes.
type Deps struct {
	Tables Tables
	Store  Store

	// Send sends the messages of large cascades. nil works without a queue: the
	// record waits for every deletion.
	Send      func(ctx context.Context, m sluice.Message) error
	Threshold int // rows that a record deletes itself; see [cascade.Config]

	Now     func() time.Time // default time.Now
	Metrics metrics.Meter    // nil: none
	Logger  *slog.Logger     // default slog.Default()
}

// NewRouter returns Estuve's routes. Each can be repeated, so that they take
// redriven records.
func NewRouter(d Deps) (*router.Router, error) {
	points, maps, err := newRollups(d)
	if err != nil {
		return nil, fmt.Errorf("estuve: %w", err)
	}
	cascades, err := NewCascades(d)
	if err != nil {
		return nil, fmt.Errorf("estuve: %w", err)
	}
	r := router.New(router.TypeFrom(router.Table(map[string]string{
		d.Tables.Users: "user", d.Tables.Maps: "map", d.Tables.Points: "point",
	})))
	r.Handle("map#INSERT map#REMOVE", maps.Handle, router.Name("count maps"), router.NeedsBoth(), router.Redrive())
	r.Handle("point#INSERT", points.Handle, router.Name("count points"), router.NeedsNew(), router.Redrive())
	r.Handle("point#REMOVE", points.Handle, router.Name("discount points"), router.NeedsOld(), router.Redrive())
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

// Names of the counters. They must never change.
const (
	pointsName = "estuve.points"
	mapsName   = "estuve.maps"
)

// newRollups returns what counts points and maps. A point whose map is not there
// is counted on its user and then deleted, which takes it off again.
func newRollups(d Deps) (points, maps *rollup.Rollup, err error) {
	points, err = rollup.New(rollup.Config{
		Name: pointsName,
		Counts: []rollup.Count{
			{Table: d.Tables.Maps, Attribute: "num_points", Key: rollup.By(mapKey...)},
			{Table: d.Tables.Users, Attribute: "num_points", Key: rollup.By(userKey...)},
		},
		Orphans: &rollup.Orphans{Table: d.Tables.Maps, While: []string{"user_id"}, Transact: d.Store.Transact},
		Once:    d.Store.Once, Get: d.Store.Get, Markers: d.Tables.Markers, Now: d.Now,
	})
	if err != nil {
		return nil, nil, err
	}
	maps, err = rollup.New(rollup.Config{
		Name:   mapsName,
		Counts: []rollup.Count{{Table: d.Tables.Users, Attribute: "num_maps", Key: rollup.By(userKey...)}},
		Once:   d.Store.Once, Get: d.Store.Get, Markers: d.Tables.Markers, Now: d.Now,
	})
	return points, maps, err
}

// Cascades delete the children of a user and of a map.
type Cascades struct{ Users, Maps *cascade.Cascade }

// NewCascades returns the cascades alone, such as for a dry run.
func NewCascades(d Deps) (c Cascades, err error) {
	base := cascade.Config{
		Get: d.Store.Get, Query: d.Store.Query, Delete: d.Store.DeleteGuarded,
		Send: d.Send, Threshold: d.Threshold, Metrics: d.Metrics, Logger: d.Logger,
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
