package warehouse

import (
	"encoding/json"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// has reports whether the item has the fields already, of the kinds that this
// package sets.
func has(it sluice.Item, fields map[string]any) bool {
	for name, want := range fields {
		v, ok := it.Lookup(name)
		switch want := want.(type) {
		case nil:
			if ok {
				return false
			}
		case string:
			if !v.Is(want) {
				return false
			}
		case int64:
			if n, ok := v.Int64(); !ok || n != want {
				return false
			}
		case item.Value:
			if !v.Equal(want) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// list is the attribute value that a slice makes, by its JSON.
func list(of any) item.Value {
	data, err := json.Marshal(map[string]any{"list": of})
	if err != nil {
		panic(err) // of strings and whole numbers
	}
	it, err := item.FromJSON(data)
	if err != nil {
		panic(err)
	}
	v, _ := it.Lookup("list")
	return v
}
