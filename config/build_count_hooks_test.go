package config

import (
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/dynamo"
	"github.com/sluicehq/sluice/handlers/rollup"
)

// What is added to a parent that is not there is lost, and told of.
func TestCountTellsOfWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.tables.Create("users", "user_id", "")
		w.tables.Create("maps", "user_id", "map_id")
		w.tables.Create("points", "map_id", "point_id")
		w.tables.Create("markers", "pk", "")
		put(t, w.tables, "users", `{"user_id":"u"}`)
		var lost []string
		s := w.setup()
		s.Rollup = rollup.Hooks{Dropped: func(_ *sluice.Record, add dynamo.Add) { lost = append(lost, add.Table) }}
		c := mapsFile()
		c.Routes[0].Count.DeleteOrphans = ""
		app, err := c.Build(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		put(t, w.tables, "points", `{"map_id":"gone","point_id":"1","user_id":"u"}`)
		run(t, w.tables, app)
		if len(lost) != 1 || lost[0] != "maps" {
			t.Errorf("told of %q, want the map that is not there", lost)
		}
	})
}
