package streamtest

import (
	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// sizeOf returns the bytes of an item as DynamoDB counts them: names and values of
// its attributes.
func sizeOf(it sluice.Item) int {
	n := 0
	for name, v := range it.All() {
		n += len(name) + sizeOfValue(v)
	}
	return n
}

func sizeOfValue(v item.Value) int {
	n := 0
	switch v.Kind() {
	case item.S, item.B:
		return v.Len()
	case item.N:
		return parseDecimal(v.Str()).size()
	case item.SS, item.NS, item.BS:
		for e := range v.Set() {
			n += sizeOfValue(e)
		}
		return n
	case item.L:
		for e := range v.List() {
			n += 1 + sizeOfValue(e)
		}
		return n + 3
	case item.M:
		for name, e := range v.Map().All() {
			n += 1 + len(name) + sizeOfValue(e)
		}
		return n + 3
	}
	return 1
}
