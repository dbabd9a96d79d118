package config

import (
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/tally"
)

// An addition to a missing parent is lost, and a metric counts it.
func TestCountTellsOfWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.tables.Create("users", "user_id", "")
		w.tables.Create("maps", "user_id", "map_id")
		w.tables.Create("points", "map_id", "point_id")
		w.tables.Create("markers", "pk", "")
		put(t, w.tables, "users", `{"user_id":"u"}`)
		s := w.setup()
		var counts tally.Tally
		s.Metrics = &counts
		c := mapsFile()
		c.Routes[0].Count.DeleteOrphans = ""
		app, err := build(t, c, s)
		if err != nil {
			t.Fatal(err)
		}
		put(t, w.tables, "points", `{"map_id":"gone","point_id":"1","user_id":"u"}`)
		run(t, w.tables, app)
		if lost := counts.By("sluice_count_additions_lost_total"); len(lost) != 1 || lost["maps"] != 1 {
			t.Errorf("counted %v, want the map that is not there", lost)
		}
	})
}

// Numbers can be on separate rows that the application makes and deletes with the
// parents. Then a transaction touches no row of the application.
func TestCountOnRowsOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for table, key := range map[string]string{"users": "user_id", "userCounts": "user_id", "points": "point_id", "markers": "pk"} {
			w.tables.Create(table, key, "")
		}
		c := one(Route{On: Strings{"point#*"}, Count: &Count{ID: "points", Markers: "markers", Numbers: []Counter{
			{Table: "userCounts", Attribute: "points", Key: KeyFrom{"user_id": "owner"}},
		}}})
		c.Source.Tables = Strings{"points"}
		c.EntityType = EntityType{Tables: map[string]string{"points": "point"}}
		app := w.build(t, c)
		put(t, w.tables, "users", `{"user_id":"u"}`)
		put(t, w.tables, "userCounts", `{"user_id":"u"}`)
		put(t, w.tables, "points", `{"point_id":"1","owner":"u"}`, `{"point_id":"2","owner":"u"}`, `{"point_id":"3","owner":"gone"}`)
		held := map[string]bool{}
		w.tables.Fault = func(_ bool, ops []dynamo.Op) error {
			for _, op := range ops {
				held[op.Table] = true
			}
			return nil
		}
		run(t, w.tables, app)
		if got := all(w.tables, "users", "userCounts"); got != `{"user_id":"u"}{"points":2,"user_id":"u"}` || held["users"] || held["points"] || !held["userCounts"] {
			t.Errorf("%s, transactions held rows of %v", got, held)
		}
	})
}

// A point before its user is not counted. A recount counts it.
func TestCountOfALateParent(t *testing.T) {
	for _, recounted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.tables.Create("users", "user_id", "")
			w.tables.Create("points", "user_id", "point_id")
			w.tables.Create("markers", "pk", "")
			c := one(Route{On: Strings{"point#*"}, Count: &Count{ID: "points", Markers: "markers", Numbers: []Counter{
				{Table: "users", Attribute: "points", Key: KeyFrom{"user_id": "user_id"}},
			}}})
			c.Source.Tables = Strings{"points"}
			c.EntityType = EntityType{Tables: map[string]string{"points": "point"}}
			app := w.build(t, c)
			put(t, w.tables, "points", `{"user_id":"u","point_id":"1"}`)
			run(t, w.tables, app)
			put(t, w.tables, "users", `{"user_id":"u"}`)
			put(t, w.tables, "points", `{"user_id":"u","point_id":"2"}`)
			run(t, w.tables, app)
			want := `{"points":1,"user_id":"u"}`
			if recounted {
				want = `{"points":2,"user_id":"u"}`
				done, err := app.Routes[0].Recounts[0].Run(t.Context(), func(yield func(sluice.Item, error) bool) { yield(plain(`{"user_id":"u"}`), nil) })
				if err != nil || done.Corrected != 1 {
					t.Errorf("%+v, %v", done, err)
				}
			}
			if got := all(w.tables, "users"); got != want {
				t.Errorf("recounted %v: %s, want %s", recounted, got, want)
			}
			if err := w.tables.Write(t.Context(), dynamo.Delete("points", plain(`{"user_id":"u","point_id":"1"}`))); err != nil {
				t.Fatal(err)
			}
			run(t, w.tables, app)
			if got := all(w.tables, "users"); got != `{"points":1,"user_id":"u"}` {
				t.Errorf("recounted %v: %s after the first has gone", recounted, got)
			}
		})
	}
}
