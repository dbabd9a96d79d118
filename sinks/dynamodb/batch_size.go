package dynamodb

import (
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/itemsize"
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
	return itemsize.Of(it, func(item.Value) int { return 1 })
}
