// Package itemsize counts the bytes of items as DynamoDB does.
package itemsize

import (
	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// Of returns the bytes of an item: names and values of its attributes. number returns
// those of a number, which DynamoDB counts in its own way.
func Of(it sluice.Item, number func(item.Value) int) (n int) {
	for name, v := range it.All() {
		n += len(name) + ofValue(v, number)
	}
	return n
}

func ofValue(v item.Value, number func(item.Value) int) (n int) {
	switch v.Kind() {
	case item.S, item.B:
		return v.Len()
	case item.N:
		return number(v)
	case item.SS, item.NS, item.BS:
		for e := range v.Set() {
			n += ofValue(e, number)
		}
		return n
	case item.L:
		for e := range v.List() {
			n += 1 + ofValue(e, number)
		}
		return n + 3
	case item.M:
		for name, e := range v.Map().All() {
			n += 1 + len(name) + ofValue(e, number)
		}
		return n + 3
	}
	return 1
}
