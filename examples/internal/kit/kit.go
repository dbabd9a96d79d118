// Package kit is what the example programs share: commands, tables, connections and
// fixtures.
package kit

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// Fixture is an item and the table that it is in.
type Fixture struct {
	Table string
	Item  sluice.Item
}

// Items reads a file with an item in each line. It panics if the file is wrong: the
// file is a part of the program.
func Items(file []byte) (all []sluice.Item) {
	for line := range bytes.Lines(file) {
		all = append(all, parse(line, len(all)))
	}
	return all
}

// Fixtures is Items for a file with tables: {"Table": "users", "Item": {…}}.
func Fixtures(file []byte) (all []Fixture) {
	for line := range bytes.Lines(file) {
		var f struct {
			Table string
			Item  json.RawMessage
		}
		if err := json.Unmarshal(line, &f); err != nil {
			panic(fmt.Sprintf("fixture %d: %v", len(all)+1, err))
		}
		all = append(all, Fixture{f.Table, parse(f.Item, len(all))})
	}
	return all
}

func parse(data []byte, before int) sluice.Item {
	it, err := item.Parse(data)
	if err != nil {
		panic(fmt.Sprintf("fixture %d: %v", before+1, err))
	}
	return it
}

// Text returns a string attribute; "" when the item lacks it.
func Text(it sluice.Item, path string) string {
	v, _ := it.Lookup(path)
	if v.Kind() != item.S {
		return ""
	}
	return v.Str()
}

// Number returns a whole number; false when the item lacks it.
func Number(it sluice.Item, path string) (n int64, ok bool) {
	v, ok := it.Lookup(path)
	if !ok {
		return 0, false
	}
	return v.Int64()
}
