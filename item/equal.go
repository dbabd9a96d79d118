package item

import (
	"bytes"
	"hash/maphash"
	"maps"
	"math/bits"
	"slices"
)

var hashSeed = maphash.MakeSeed()

// Hash returns a hash of the attributes. Order of attributes and escapes in
// strings do not change it, so it identifies an item by its keys. Equal items have
// equal hashes. The hash of an item differs between processes.
func (it Item) Hash() uint64 {
	var sum uint64
	for c := it.cursor(); c.next(); {
		sum += combine(maphash.Bytes(hashSeed, textBytes(c.name)), c.value.hash())
	}
	return sum
}

func combine(a, b uint64) uint64 { return mix(mix(a) + bits.RotateLeft64(b, 23)) }

func (v Value) hash() uint64 {
	h := uint64(v.kind)
	switch v.kind {
	case S, B:
		h = combine(h, maphash.Bytes(hashSeed, textBytes(v.raw)))
	case N:
		var buf [64]byte
		h = combine(h, maphash.Bytes(hashSeed, appendDecimal(buf[:0], textBytes(v.raw))))
	case BOOL, NULL:
		h = combine(h, uint64(v.raw[0]))
	case M:
		h = combine(h, v.Map().Hash())
	case L:
		for e := range v.List() {
			h = combine(h, e.hash())
		}
	case SS, NS, BS:
		var sum uint64
		for e := range v.Set() {
			sum += mix(e.hash())
		}
		h = combine(h, sum)
	}
	return h
}

// Equal reports whether two items hold the same attributes with the same types and
// values. It ignores the order of attributes and of set members, escapes and white
// space. It compares numbers as numbers. An absent item equals only another absent
// item.
func (it Item) Equal(o Item) bool {
	if it.idx != nil && o.idx != nil && len(it.idx) != len(o.idx) {
		return false
	}
	return it.EqualBut(o, func([]byte) bool { return false })
}

// EqualBut is Equal without the attributes for whose names skip reports true. The
// name is valid during the call.
func (it Item) EqualBut(o Item, skip func(name []byte) bool) bool {
	switch {
	case it.Exists() != o.Exists():
		return false
	case bytes.Equal(it.raw, o.raw):
		return true
	}
	// Maps from one writer mostly have the same attributes in the same order
	// and the same bytes. Such attributes need no parsing.
	c, d, others := it.cursor(), o.cursor(), finder{in: o}
	left, right := 0, 0 // attributes compared by name; each left has a right
	for n := 1; ; n++ {
		if n < len(it.idx) { // the index gives the attribute's end
			end := int(it.idx[n].off) - 1
			for c.b[end] != ',' {
				end--
			}
			if d.pass(c.b[c.i+1 : end]) {
				c.i = end
				continue
			}
		}
		from := c.i
		if !c.next() {
			break
		}
		if d.pass(c.b[from+1:c.i]) || skip(textBytes(c.name)) {
			continue
		}
		left++
		var w Value
		ok := d.nextBut(skip)
		if ok {
			right++
		}
		if ok && bytes.Equal(c.name, d.name) {
			w = d.value
		} else if w, ok = others.get(text(c.name)); !ok {
			return false
		}
		if !c.value.Equal(w) {
			return false
		}
	}
	for d.nextBut(skip) {
		right++
	}
	return left == right
}

// finder finds attributes of one map by name. For repeated searches it indexes a
// large map.
type finder struct {
	in    Item
	asked int
	all   map[string]Value
}

func (f *finder) get(name string) (Value, bool) {
	if f.asked++; f.asked <= fewNames {
		return f.in.get(name)
	}
	if f.all == nil {
		f.all = maps.Collect(f.in.All())
	}
	v, ok := f.all[name]
	return v, ok
}

// Equal compares two values as Item.Equal does.
func (v Value) Equal(o Value) bool {
	switch {
	case v.kind != o.kind:
		return false
	case bytes.Equal(v.raw, o.raw):
		return true
	}
	switch v.kind {
	case S, B:
		return bytes.Equal(textBytes(v.raw), textBytes(o.raw))
	case N:
		return bytes.Equal(canonical(v), canonical(o))
	case M:
		return v.Map().Equal(o.Map())
	case L:
		a, b := elements{b: v.raw}, elements{b: o.raw}
		for a.next() {
			if !b.next() || !a.element(L).Equal(b.element(L)) {
				return false
			}
		}
		return !b.next()
	case SS, NS, BS:
		return slices.EqualFunc(members(v), members(o), bytes.Equal)
	}
	return false
}

// members returns the members of a set in a canonical order.
func members(v Value) [][]byte {
	var out [][]byte
	for e := range v.Set() {
		out = append(out, canonical(e))
	}
	slices.SortFunc(out, bytes.Compare)
	return out
}

// canonical returns the same bytes for equal scalars of one kind.
func canonical(v Value) []byte {
	if v.kind == N {
		return appendDecimal(nil, textBytes(v.raw))
	}
	return textBytes(v.raw)
}
