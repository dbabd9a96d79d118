package kit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
)

// Set returns op with the update that sets fields by name. One that is nil is
// removed.
func Set(op dynamo.Op, fields map[string]any) dynamo.Op {
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

// Same returns op with the condition that the attributes with these names are
// still as they were read.
func Same(op dynamo.Op, it sluice.Item, names ...string) dynamo.Op {
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

// Given is a text as a field for Set: nil if it is empty.
func Given(text string) any {
	if text == "" {
		return nil
	}
	return text
}
