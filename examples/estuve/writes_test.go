package estuve

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/effect/dynamo"
)

func TestWrites(t *testing.T) {
	w := newWorld()
	checkWrites(t, Writes{Tables: w.tables, Write: w.Write}, Reads{Tables: w.tables, Store: w})
}

// checkWrites writes on empty tables, beside counters that others write.
func checkWrites(t *testing.T, w Writes, r Reads) {
	t.Helper()
	ctx := t.Context()
	must := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Error(err)
			}
		}
	}
	points := []Point{
		{MapID: "m-1", ID: "p-1", UserID: "u-1", Lat: "41.38", Lon: "2.17", Date: 1548633600, Name: "a"},
		{MapID: "m-1", ID: "p-2", UserID: "u-1", Lat: "41.39", Lon: "2.18", Date: 1548633601},
	}
	must(w.SaveUser(ctx, "u-1"), w.SaveMap(ctx, Map{UserID: "u-1", ID: "m-1", Name: "Alps", Points: 7}), w.SavePoint(ctx, points[0]), w.SavePoint(ctx, points[1]))
	const count = "SET num_points = :n"
	must(
		w.Write(ctx, dynamo.Update(w.Tables.Users, keyOfUser("u-1"), count).Value(":n", 2)),
		w.Write(ctx, dynamo.Update(w.Tables.Maps, keyOfMap("u-1", "m-1"), count).Value(":n", 2)))

	points[1].Name = "b"
	must(w.SaveUser(ctx, "u-1"), w.SaveMap(ctx, Map{UserID: "u-1", ID: "m-1", Name: "Alps", Description: "high"}), w.SavePoint(ctx, points[1]))
	if u, ok, err := r.User(ctx, "u-1"); u != (User{ID: "u-1", Points: 2}) || !ok || err != nil {
		t.Errorf("user %+v, %v, %v", u, ok, err)
	}
	if m, ok, err := r.Map(ctx, "u-1", "m-1"); m != (Map{UserID: "u-1", ID: "m-1", Name: "Alps", Description: "high", Points: 2}) || !ok || err != nil {
		t.Errorf("map %+v, %v, %v", m, ok, err)
	}
	if got, _, err := r.Points(ctx, "m-1", 0, ""); err != nil || !slices.Equal(got, points) {
		t.Errorf("points %+v, %v", got, err)
	}

	must(w.DeletePoint(ctx, "m-1", "p-1"), w.DeleteMap(ctx, "u-1", "m-1"), w.DeleteUser(ctx, "u-1"), w.DeleteUser(ctx, "u-1"))
	if got, _, err := r.Points(ctx, "m-1", 0, ""); err != nil || !slices.Equal(got, points[1:]) {
		t.Errorf("points %+v, %v", got, err)
	}
	for what, exists := range map[string]func(context.Context) (bool, error){
		"user": func(ctx context.Context) (bool, error) { _, ok, err := r.User(ctx, "u-1"); return ok, err },
		"map":  func(ctx context.Context) (bool, error) { _, ok, err := r.Map(ctx, "u-1", "m-1"); return ok, err },
	} {
		if ok, err := exists(ctx); ok || err != nil {
			t.Errorf("the %s is there: %v, %v", what, ok, err)
		}
	}
	for _, err := range []error{w.SaveUser(ctx, ""), w.SaveMap(ctx, Map{ID: "m"}), w.SavePoint(ctx, Point{MapID: "m", ID: "p"})} {
		if err == nil || !strings.Contains(err.Error(), "lacks an id") {
			t.Error(err)
		}
	}
}
