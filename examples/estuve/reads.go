package estuve

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// User is one who owns maps.
type User struct {
	ID     string `dynamodbav:"user_id"`
	Maps   int64  `dynamodbav:"num_maps"`
	Points int64  `dynamodbav:"num_points"` // of all maps
}

// Map holds points.
type Map struct {
	UserID      string `dynamodbav:"user_id"`
	ID          string `dynamodbav:"map_id"`
	Name        string `dynamodbav:"name"`
	Description string `dynamodbav:"description"`
	Points      int64  `dynamodbav:"num_points"`
}

// Point is a place on a map. Lat and Lon are as they were written.
type Point struct {
	MapID  string `dynamodbav:"map_id"`
	ID     string `dynamodbav:"point_id"`
	UserID string `dynamodbav:"user_id"`
	Lat    string `dynamodbav:"lat"`
	Lon    string `dynamodbav:"lon"`
	Date   int64  `dynamodbav:"date"` // seconds since 1970
	Name   string `dynamodbav:"name"`
}

// Reads are the questions that users ask. They are answered consistently,
// counters apart: those follow the items by the lag of the streams.
type Reads struct {
	Tables Tables
	Get    func(ctx context.Context, table string, key sluice.Item) (sluice.Item, error)
	Query  func(ctx context.Context, q dynamo.Query) (dynamo.Page, error)
}

// User returns a user; false when there is none.
func (r Reads) User(ctx context.Context, userID string) (u User, ok bool, err error) {
	ok, err = r.one(ctx, r.Tables.Users, keyOfUser(userID), &u)
	return u, ok, err
}

// Map returns a map; false when there is none.
func (r Reads) Map(ctx context.Context, userID, mapID string) (m Map, ok bool, err error) {
	ok, err = r.one(ctx, r.Tables.Maps, keyOfMap(userID, mapID), &m)
	return m, ok, err
}

// Maps returns the maps of a user in the order of their ids.
func (r Reads) Maps(ctx context.Context, userID string) ([]Map, error) {
	var maps []Map
	q := dynamo.Query{Table: r.Tables.Maps, Partition: item.String("user_id", userID)}
	for it, err := range dynamo.All(ctx, r.Query, q) {
		if err != nil {
			return nil, err
		}
		var m Map
		if err := decode(r.Tables.Maps, it, &m); err != nil {
			return nil, err
		}
		maps = append(maps, m)
	}
	return maps, nil
}

// Points returns a page of up to limit points of a map, ordered by id (0 is the
// service's page size), and where the next page begins. after is "" for the first
// page, and next is "" after the last. Points that are added or deleted meanwhile
// do not repeat or hide others.
func (r Reads) Points(ctx context.Context, mapID string, limit int, after string) (points []Point, next string, err error) {
	q := dynamo.Query{Table: r.Tables.Points, Partition: item.String("map_id", mapID)}
	if limit > 0 {
		q.Limit = limit + 1 // DynamoDB ends a full page without knowing whether another follows
	}
	if after != "" {
		q.After = item.Of(item.String("map_id", mapID), item.String("point_id", after))
	}
	page, err := r.Query(ctx, q)
	if err != nil {
		return nil, "", err
	}
	items := page.Items
	if limit > 0 && len(items) > limit {
		items = items[:limit]
		page.Next = items[limit-1]
	}
	for _, it := range items {
		var p Point
		if err := decode(r.Tables.Points, it, &p); err != nil {
			return nil, "", err
		}
		points = append(points, p)
	}
	last, _ := page.Next.Lookup("point_id")
	return points, last.Str(), nil
}

func (r Reads) one(ctx context.Context, table string, key sluice.Item, into any) (bool, error) {
	it, err := r.Get(ctx, table, key)
	if err != nil || !it.Exists() {
		return false, err
	}
	return true, decode(table, it, into)
}

func decode(table string, it sluice.Item, into any) error {
	if err := it.Decode(into); err != nil {
		return fmt.Errorf("an item of table %s: %w", table, err)
	}
	return nil
}
