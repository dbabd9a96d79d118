package warehouse

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

//go:embed fixtures/items.ndjson
var fixtures []byte

// Fixture is an item and the table, without its prefix, that it is in.
type Fixture struct {
	Table string
	Item  sluice.Item
}

// Fixtures returns a head with the build of 0.9.0; the seven events of a build of
// two locales, of which the sixth repeats the fifth and the last is late; and a
// build, a version and two release lines of another package.
func Fixtures() []Fixture {
	var all []Fixture
	for line := range bytes.Lines(fixtures) {
		var f struct {
			Table string
			Item  json.RawMessage
		}
		err := json.Unmarshal(line, &f)
		if err != nil {
			panic(fmt.Sprintf("warehouse: fixture %d: %v", len(all)+1, err))
		}
		it, err := item.Parse(f.Item)
		if err != nil {
			panic(fmt.Sprintf("warehouse: fixture %d: %v", len(all)+1, err))
		}
		all = append(all, Fixture{Table: f.Table, Item: it})
	}
	return all
}
