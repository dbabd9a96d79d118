package jsonscan

import (
	"encoding/binary"
	"math/bits"
)

// Text is looked at eight bytes at a time, as one little-endian word whose
// bytes are compared by arithmetic: subtracting sets the top bit of a byte that
// was smaller. A borrow can set top bits above the first such byte but never
// below it, so that the first one found is right.

const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// Load returns the eight bytes at b[i:].
func Load(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }

// First returns the index of the first byte marked in m, which is not 0.
func First(m uint64) int { return bits.TrailingZeros64(m) >> 3 }

// Special marks the bytes of w that end a run of plain text in a string: a quote,
// a backslash, a control character or a non-ASCII byte. Only the first mark
// counts.
func Special(w uint64) uint64 {
	return ((w - 0x20*ones) | ((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones) | w) & tops
}

// NonDigit marks the bytes of w that are not decimal digits. Only the first
// mark counts.
func NonDigit(w uint64) uint64 {
	d := w ^ '0'*ones
	return ((d + (0x80-10)*ones) | d) & tops
}

// quoteOrEscape marks quotes and backslashes. Only the first mark counts.
func quoteOrEscape(w uint64) uint64 {
	q, e := w^'"'*ones, w^'\\'*ones
	return ((q-ones) & ^q | (e-ones) & ^e) & tops
}
