package streamtest

import (
	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/itemsize"
	"github.com/sluicehq/sluice/item"
)

// sizeOf returns the bytes of an item as DynamoDB counts them.
func sizeOf(it sluice.Item) int {
	return itemsize.Of(it, func(number item.Value) int { return parseDecimal(number.Str()).size() })
}
