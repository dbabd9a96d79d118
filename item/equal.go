package item

import (
	"hash/maphash"
	"math/big"
	"slices"
)

var seed = maphash.MakeSeed()

// Hash returns a hash of the attribute map that does not depend on the order
// of its attributes nor on how its strings are escaped, so that it names an
// item by its keys. It differs from process to process. Equal items have equal
// hashes, but for numbers written differently (1 and 1.0).
func (it Item) Hash() uint64 {
	var sum uint64
	for c := it.cursor(); c.next(); {
		sum += hashAttr(c.name, c.value)
	}
	return sum
}

func hashAttr(name []byte, v Value) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.Write(textBytes(name))
	h.WriteByte(0xff) // in no UTF-8 text
	h.WriteByte(byte(v.kind))
	switch v.kind {
	case S, N, B:
		h.Write(textBytes(v.raw))
	case M:
		maphash.WriteComparable(&h, v.Map().Hash())
	case L:
		for e := range v.List() {
			maphash.WriteComparable(&h, hashAttr([]byte(`""`), e))
		}
	case SS, NS, BS:
		var sum uint64
		for e := range v.Set() {
			sum += hashAttr([]byte(`""`), e)
		}
		maphash.WriteComparable(&h, sum)
	default:
		h.Write(v.raw)
	}
	return h.Sum64()
}

// Equal reports whether two items hold the same attributes with the same
// types and values; order of attributes, order within sets, escapes and white
// space do not count, numbers are compared as numbers.
func (it Item) Equal(o Item) bool {
	if it.Exists() != o.Exists() || it.Len() != o.Len() {
		return false
	}
	for c := it.cursor(); c.next(); {
		w, ok := o.get(text(c.name))
		if !ok || !c.value.Equal(w) {
			return false
		}
	}
	return true
}

// Equal compares two values as Item.Equal does.
func (v Value) Equal(o Value) bool {
	if v.kind != o.kind {
		return false
	}
	switch v.kind {
	case S, B:
		return string(textBytes(v.raw)) == string(textBytes(o.raw))
	case N:
		return canonical(v) == canonical(o)
	case M:
		return v.Map().Equal(o.Map())
	case L:
		a, b := slices.Collect(v.List()), slices.Collect(o.List())
		return slices.EqualFunc(a, b, Value.Equal)
	case SS, NS, BS:
		return slices.Equal(members(v), members(o))
	}
	return string(v.raw) == string(o.raw)
}

// members returns a set's members in an order of their own.
func members(v Value) []string {
	var out []string
	for e := range v.Set() {
		out = append(out, canonical(e))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// canonical returns a text that two equal scalars share.
func canonical(v Value) string {
	t := text(v.raw)
	if v.kind != N {
		return t
	}
	r, ok := new(big.Rat).SetString(t)
	if !ok {
		return t
	}
	return r.RatString()
}
