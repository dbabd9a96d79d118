package config

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

const limitedFile = `
name: maps
source: {tables: [maps], start: LATEST}
entityType: {tables: {maps: map, points: point}}
routes:
  - name: delete points
    on: map#REMOVE
    cascade:
      key: [map_id]
      children:
        - table: points
          key: [map_id, point_id]
          partition: {name: map_id, from: map_id}
          notNewer: %s
`

func limited(t *testing.T, limit string) (*Config, error) {
	t.Helper()
	return Parse("sluice.yaml", t.TempDir(), fmt.Appendf(nil, limitedFile, limit), func(string) (string, bool) { return "", false })
}

// The map is gone. Points of its newer version stay.
func TestCascadeKeepsWhatIsNewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.tables.Create("maps", "map_id", "")
		w.tables.Create("points", "map_id", "point_id")
		c, err := limited(t, "{name: map_version, from: version}")
		if err != nil {
			t.Fatal(err)
		}
		app := w.build(t, c)
		put(t, w.tables, "maps", `{"map_id":"m","version":7}`)
		if err := w.tables.Write(t.Context(), dynamo.Delete("maps", plain(`{"map_id":"m"}`))); err != nil {
			t.Fatal(err)
		}
		put(t, w.tables, "points", `{"map_id":"m","point_id":"old","map_version":7}`, `{"map_id":"m","point_id":"none"}`, `{"map_id":"m","point_id":"new","map_version":8}`)
		run(t, w.tables, app)
		if got := all(w.tables, "points"); got != `{"map_id":"m","map_version":8,"point_id":"new"}` {
			t.Error(got)
		}
		// The version is in the old image.
		rec := streamtest.Remove("maps", plain(`{"map_id":"m","version":7}`), streamtest.WithKeys("map_id"), streamtest.WithView(item.NewImage))
		if err := app.Router.Dispatch(t.Context(), &rec); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "needs the old image") {
			t.Error(err)
		}
	})
}

func TestLimitsOfCascadesThatAreWrong(t *testing.T) {
	for limit, want := range map[string]string{
		"{from: version}":       "name",
		"{name: v, time: days}": "seconds, milliseconds or rfc3339",
		"{name: v}":             `has From "" and Time ""`,
		"{name: v, from: version, time: rfc3339}": `set one of them`,
		"{name: v, from: map_id}":                 "is of the parent's key",
	} {
		c, err := limited(t, limit)
		if err == nil {
			w := newWorld()
			_, err = c.Build(t.Context(), w.setup())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", limit, err, want)
		}
	}
}
