package estuve

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/handlers/rollup"
)

func TestReads(t *testing.T) {
	w := newWorld()
	w.put(t, Fixtures(w.tables)...)
	w.put(t, Fixture{Table: "users", Item: parse(`{"user_id":{"S":"u-2"}}`)}, Fixture{Table: "maps", Item: parse(`{"user_id":{"S":"u-2"},"map_id":{"S":"m-3"},"name":{"S":"Moor"}}`)})
	checkReads(t, Reads{Tables: w.tables, Store: w})
}

// checkReads asks everything of the fixtures, and of a user u-2 whose map m-3
// has not been counted.
func checkReads(t *testing.T, r Reads) {
	t.Helper()
	ctx := t.Context()
	for _, want := range []User{{ID: "u-1", Maps: 2, Points: 5}, {ID: "u-2"}} {
		if u, ok, err := r.User(ctx, want.ID); u != want || !ok || err != nil {
			t.Errorf("user %+v, %v, %v", u, ok, err)
		}
	}
	if u, ok, err := r.User(ctx, "nobody"); ok || err != nil {
		t.Errorf("user %+v, %v", u, err)
	}
	alps, sea := Map{UserID: "u-1", ID: "m-1", Name: "Alps", Points: 3}, Map{UserID: "u-1", ID: "m-2", Name: "Sea", Points: 2}
	if maps, err := r.Maps(ctx, "u-1"); err != nil || !slices.Equal(maps, []Map{alps, sea}) {
		t.Errorf("maps %+v, %v", maps, err)
	}
	if maps, err := r.Maps(ctx, "u-2"); err != nil || !slices.Equal(maps, []Map{{UserID: "u-2", ID: "m-3", Name: "Moor"}}) {
		t.Errorf("maps %+v, %v", maps, err)
	}
	if maps, err := r.Maps(ctx, "nobody"); err != nil || len(maps) != 0 {
		t.Errorf("maps %+v, %v", maps, err)
	}
	if m, ok, err := r.Map(ctx, "u-1", "m-2"); m != sea || !ok || err != nil {
		t.Errorf("map %+v, %v, %v", m, ok, err)
	}
	if m, ok, err := r.Map(ctx, "u-2", "m-2"); ok || err != nil {
		t.Errorf("somebody else's map %+v, %v", m, err)
	}
	for limit, want := range map[int]string{0: "[p-1 p-2 p-3]", 1: "[p-1] [p-2] [p-3]", 2: "[p-1 p-2] [p-3]", 3: "[p-1 p-2 p-3]"} {
		pages, after := "", ""
		for range 9 {
			points, next, err := r.Points(ctx, "m-1", limit, after)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, p := range points {
				ids = append(ids, p.ID)
			}
			pages += fmt.Sprint(ids, " ")
			if after = next; next == "" {
				break
			}
		}
		if pages != want+" " {
			t.Errorf("pages of %d: %s, want %s", limit, pages, want)
		}
	}
	points, _, err := r.Points(ctx, "m-2", 0, "p-4")
	if want := (Point{MapID: "m-2", ID: "p-5", UserID: "u-1", Lat: "41.42", Lon: "2.21", Date: 1548633604, Name: "e"}); err != nil || len(points) != 1 || points[0] != want {
		t.Errorf("%+v, %v", points, err)
	}
}

func TestRecount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.router(t, 500)
		w.put(t, Written(w.tables)...)
		w.run(t, r)
		w.put(t, Fixture{Table: "points", Item: parse(`{"map_id":{"S":"m-2"},"point_id":{"S":"p-6"},"user_id":{"S":"u-2"}}`)}) // about to go
		recount := func(dry bool) (done rollup.Recounted, found []string) {
			t.Helper()
			c := Recounter{Tables: w.tables, Store: w, DryRun: dry, Found: func(c rollup.Correction) {
				found = append(found, fmt.Sprint(c.Table, " ", string(c.Key.Raw()), " ", c.Attribute, " ", c.Old, " to ", c.New))
			}}
			done, err := c.Run(t.Context(), slices.Values([]string{"u-1", "gone"}))
			if err != nil {
				t.Fatal(err)
			}
			return done, found
		}
		for _, drift := range []struct{ table, key, attribute string }{
			{"users", `{"user_id":{"S":"u-1"}}`, "num_maps"},
			{"users", `{"user_id":{"S":"u-1"}}`, "num_points"},
			{"maps", deleteM1, "num_points"},
		} {
			op := dynamo.Update(drift.table, parse(drift.key), "SET #n = :n").Name("#n", drift.attribute).Value(":n", 40)
			if err := w.Write(t.Context(), op); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{
			`maps {"user_id":{"S":"u-1"},"map_id":{"S":"m-1"}} num_points 40 to 3`,
			`users {"user_id":{"S":"u-1"}} num_maps 40 to 2`,
			`users {"user_id":{"S":"u-1"}} num_points 40 to 5`,
		}
		for _, dry := range []bool{true, false} {
			begin := time.Now()
			if done, found := recount(dry); !slices.Equal(found, want) || done.Corrected != 3 {
				t.Errorf("dry %v: %q %+v", dry, found, done)
			}
			if took := time.Since(begin); took != 3*time.Minute {
				t.Errorf("it settles for %v", took)
			}
		}
		if done, found := recount(false); len(found) != 0 || done != (rollup.Recounted{Parents: 6, Right: 4, Gone: 2}) {
			t.Errorf("afterwards: %q %+v", found, done)
		}
	})
}
