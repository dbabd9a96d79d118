package sluice

import (
	"cmp"
	"strings"
)

// Sequence is a stream record's sequence number: 1 to 40 decimal digits exactly as
// the service wrote them, with leading zeros (AWS writes 21 to 40 digits). It is a
// position within one shard. It orders the changes of one item within one
// generation of a stream.
//
// Compare by [Sequence.Compare], never as strings: the number of digits grows.
type Sequence string

// Valid reports whether s is 1 to 40 decimal digits.
func (s Sequence) Valid() bool {
	if len(s) == 0 || len(s) > 40 {
		return false
	}
	for i := range len(s) {
		if s[i]-'0' > 9 {
			return false
		}
	}
	return true
}

// Compare compares two sequence numbers as numbers, without leading zeros. An
// empty Sequence comes first.
func (s Sequence) Compare(t Sequence) int {
	a, b := strings.TrimLeft(string(s), "0"), strings.TrimLeft(string(t), "0")
	if a == "" && b == "" { // both are zero or absent; absent comes first
		return cmp.Compare(min(len(s), 1), min(len(t), 1))
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// Fence returns s padded with leading zeros to 40 digits. Fences compare as
// strings in the order of the numbers. A handler stores the fence beside an item's
// effect and writes only when the stored fence is lower. Compare fences only
// within one generation of a stream (one stream ARN).
func (s Sequence) Fence() string {
	const zeros = "0000000000000000000000000000000000000000"
	if len(s) >= len(zeros) {
		return string(s)
	}
	return zeros[len(s):] + string(s)
}
