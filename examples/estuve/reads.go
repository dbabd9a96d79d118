package estuve

import (
	"context"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
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
	Store  kit.Reader
}

// User returns a user; false when there is none.
func (r Reads) User(ctx context.Context, userID string) (u User, ok bool, err error) {
	return kit.One[User](ctx, r.Store, r.Tables.Users, keyOfUser(userID))
}

// Map returns a map; false when there is none.
func (r Reads) Map(ctx context.Context, userID, mapID string) (m Map, ok bool, err error) {
	return kit.One[Map](ctx, r.Store, r.Tables.Maps, keyOfMap(userID, mapID))
}

// Maps returns the maps of a user in the order of their ids.
func (r Reads) Maps(ctx context.Context, userID string) ([]Map, error) {
	return kit.All[Map](ctx, r.Store, dynamo.Query{Table: r.Tables.Maps, Partition: item.String("user_id", userID)})
}

// Points returns a page of up to limit points of a map, ordered by id (0 is the
// service's page size), and where the next page begins. after is "" for the first
// page, and next is "" after the last. Points that are added or deleted meanwhile
// do not repeat or hide others.
func (r Reads) Points(ctx context.Context, mapID string, limit int, after string) (points []Point, next string, err error) {
	q := dynamo.Query{Table: r.Tables.Points, Partition: item.String("map_id", mapID)}
	if after != "" {
		q.After = item.Of(item.String("map_id", mapID), item.String("point_id", after))
	}
	points, last, err := kit.Page[Point](ctx, r.Store, q, limit)
	return points, kit.Text(last, "point_id"), err
}

func keyOfUser(userID string) sluice.Item { return item.Of(item.String("user_id", userID)) }

func keyOfMap(userID, mapID string) sluice.Item {
	return item.Of(item.String("user_id", userID), item.String("map_id", mapID))
}
