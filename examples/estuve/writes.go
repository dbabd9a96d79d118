package estuve

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// Writes are what users do. They leave the counters to the routes, which follow
// by the lag of the streams; what a user or a map holds is deleted by the routes, too.
type Writes struct {
	Tables Tables
	Write  func(ctx context.Context, op dynamo.Op) error
}

// SaveUser makes a user, unless there is one.
func (w Writes) SaveUser(ctx context.Context, userID string) error {
	if err := named("user", userID); err != nil {
		return err
	}
	err := w.Write(ctx, dynamo.Put(w.Tables.Users, keyOfUser(userID)).If("attribute_not_exists(user_id)"))
	if errors.As(err, new(*dynamo.ConditionError)) {
		return nil // there is one, with its counters
	}
	return err
}

// SaveMap writes the name and the description of a map, and makes it where there is none.
func (w Writes) SaveMap(ctx context.Context, m Map) error {
	if err := named("map", m.UserID, m.ID); err != nil {
		return err
	}
	return w.Write(ctx, dynamo.Update(w.Tables.Maps, keyOfMap(m.UserID, m.ID), "SET #name = :name, #description = :description").
		Name("#name", "name").Name("#description", "description").Value(":name", m.Name).Value(":description", m.Description))
}

// SavePoint writes a point in the place of the one with its id, if there is one.
// UserID is that of its map; a point whose map is not there is deleted again.
func (w Writes) SavePoint(ctx context.Context, p Point) error {
	if err := named("point", p.MapID, p.ID, p.UserID); err != nil {
		return err
	}
	return w.Write(ctx, dynamo.Put(w.Tables.Points, item.Of(
		item.String("map_id", p.MapID), item.String("point_id", p.ID), item.String("user_id", p.UserID),
		item.String("lat", p.Lat), item.String("lon", p.Lon), item.Number("date", strconv.FormatInt(p.Date, 10)), item.String("name", p.Name),
	)))
}

// DeleteUser deletes a user, and with it all maps and their points.
func (w Writes) DeleteUser(ctx context.Context, userID string) error {
	return w.Write(ctx, dynamo.Delete(w.Tables.Users, keyOfUser(userID)))
}

// DeleteMap deletes a map, and with it all points.
func (w Writes) DeleteMap(ctx context.Context, userID, mapID string) error {
	return w.Write(ctx, dynamo.Delete(w.Tables.Maps, keyOfMap(userID, mapID)))
}

// DeletePoint deletes a point.
func (w Writes) DeletePoint(ctx context.Context, mapID, pointID string) error {
	return w.Write(ctx, dynamo.Delete(w.Tables.Points, item.Of(item.String("map_id", mapID), item.String("point_id", pointID))))
}

func keyOfUser(userID string) sluice.Item { return item.Of(item.String("user_id", userID)) }

func keyOfMap(userID, mapID string) sluice.Item {
	return item.Of(item.String("user_id", userID), item.String("map_id", mapID))
}

func named(what string, ids ...string) error {
	for _, id := range ids {
		if id == "" {
			return fmt.Errorf("a %s lacks an id: want %d, none empty", what, len(ids))
		}
	}
	return nil
}
