package estuve

import (
	_ "embed"

	"github.com/sluicehq/sluice/examples/internal/kit"
)

//go:embed fixtures/items.ndjson
var fixtures []byte

// Fixture is an item of a table.
type Fixture = kit.Fixture

// Fixtures returns a user, two maps and five points, as they are when all of
// them have been counted.
func Fixtures(t Tables) []Fixture {
	var all []Fixture
	for _, it := range kit.Items(fixtures) {
		f := Fixture{Table: t.Users, Item: it}
		if _, ok := it.Lookup("map_id"); ok {
			f.Table = t.Maps
		}
		if _, ok := it.Lookup("point_id"); ok {
			f.Table = t.Points
		}
		all = append(all, f)
	}
	return all
}
