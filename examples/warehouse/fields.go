package warehouse

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// set returns op with the update that sets fields by name. One that is nil is
// removed.
func set(op dynamo.Op, fields map[string]any) dynamo.Op {
	var sets, removes []string
	for i, name := range slices.Sorted(maps.Keys(fields)) {
		n := fmt.Sprintf("#f%d", i)
		op = op.Name(n, name)
		if fields[name] == nil {
			removes = append(removes, n)
			continue
		}
		sets = append(sets, fmt.Sprintf("%s = :f%d", n, i))
		op = op.Value(fmt.Sprintf(":f%d", i), fields[name])
	}
	op.Update = "SET " + strings.Join(sets, ", ")
	if removes != nil {
		op.Update += " REMOVE " + strings.Join(removes, ", ")
	}
	return op
}

// same returns op with the condition that the attributes with these names are
// still as they were read.
func same(op dynamo.Op, it sluice.Item, names ...string) dynamo.Op {
	var terms []string
	for i, name := range names {
		n := fmt.Sprintf("#s%d", i)
		op = op.Name(n, name)
		v, ok := it.Lookup(name)
		if !ok {
			terms = append(terms, "attribute_not_exists("+n+")")
			continue
		}
		terms = append(terms, fmt.Sprintf("%s = :s%d", n, i))
		op = op.Value(fmt.Sprintf(":s%d", i), v)
	}
	return op.If(strings.Join(terms, " AND "))
}

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
