package streamtest

import (
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/itemsize"
	"github.com/sluicehq/sluice/item"
)

// sizeOf returns the bytes of an item as DynamoDB counts them.
func sizeOf(it sluice.Item) int { return itemsize.Of(it, sizeOfNumber) }

// sizeOfNumber is one, plus one per pair of significant digits, paired from the point,
// plus one for a minus sign.
func sizeOfNumber(v item.Value) int {
	text, _ := v.AppendText(nil) // without exponent and redundant zeros
	digits, negative := strings.CutPrefix(string(text), "-")
	if digits == "0" {
		return 1
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	all := whole + fraction
	// The powers of ten of the first and the last significant digit.
	first, last := len(strings.TrimLeft(all, "0"))-len(fraction)-1, len(whole)-len(strings.TrimRight(all, "0"))
	n := 2 + first>>1 - last>>1
	if negative {
		n++
	}
	return n
}
