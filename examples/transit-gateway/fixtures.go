package transitgateway

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

// Fixtures returns a gateway in its versions 0, 1 and 2; the claim of its name;
// and the claim of a gateway that was never made.
func Fixtures() []Fixture {
	var all []Fixture
	for line := range bytes.Lines(fixtures) {
		var f struct {
			Table string
			Item  json.RawMessage
		}
		err := json.Unmarshal(line, &f)
		if err != nil {
			panic(fmt.Sprintf("transitgateway: fixture %d: %v", len(all)+1, err)) // the file is a part of the program
		}
		it, err := item.Parse(f.Item)
		if err != nil {
			panic(fmt.Sprintf("transitgateway: fixture %d: %v", len(all)+1, err))
		}
		all = append(all, Fixture{Table: f.Table, Item: it})
	}
	return all
}
