package dynamodb

import (
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// tooLarge describes why DynamoDB would refuse an item for its size. It accepts
// doubtful sizes, because DynamoDB counts numbers in its own way.
func tooLarge(it sluice.Item) error {
	if len(it.Raw()) <= maxItemBytes { // an upper bound of the counted size
		return nil
	}
	if n := sizeOf(it); n > maxItemBytes {
		return fmt.Errorf("the item has at least %d bytes of names and values; DynamoDB allows %d", n, maxItemBytes)
	}
	return nil
}

// sizeOf estimates the bytes of an item as DynamoDB counts them. It is never
// larger.
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
