package manhunt

import (
	"bytes"
	_ "embed"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

//go:embed fixtures/items.ndjson
var fixtures []byte

// Fixtures returns items in the order in which they are to be written: a
// contact with two methods, an active search for it, a canceled search for
// someone else, and an attempt of the first search, twice: about to be made,
// and made.
func Fixtures() []sluice.Item {
	var items []sluice.Item
	for line := range bytes.Lines(fixtures) {
		it, err := item.Parse(line)
		if err != nil {
			panic(fmt.Sprintf("manhunt: fixtures: %v", err)) // the file is a part of the program
		}
		items = append(items, it)
	}
	return items
}
