package item

import (
	"iter"

	"github.com/sluicehq/sluice/internal/jsonscan"
)

// Item is one DynamoDB-JSON attribute map: {"pk":{"S":"x"},…}. Parse validates it
// once; values are decoded only when read. The zero Item is absent. An Item is
// safe for concurrent reading.
type Item struct {
	raw []byte
	idx []entry // one per attribute in stored order; nil if not built
}

// Parse validates data: one attribute map with optional white space around it. The
// Item aliases data. An error is a [*SyntaxError].
func Parse(data []byte) (Item, error) {
	var p Parser
	it, end, err := p.Parse(data, jsonscan.Space(data, 0))
	if err != nil {
		return Item{}, err
	}
	if end = jsonscan.Space(data, end); end != len(data) {
		return Item{}, &SyntaxError{Offset: end, Msg: "data after the attribute map"}
	}
	return it, nil
}

// Exists reports whether the attribute map is present. It may be empty.
func (it Item) Exists() bool { return it.raw != nil }

// Raw returns the bytes of the attribute map. Do not change them.
func (it Item) Raw() []byte { return it.raw }

// Len returns the number of attributes.
func (it Item) Len() int {
	if it.idx != nil {
		return len(it.idx)
	}
	n := 0
	for c := it.cursor(); c.next(); {
		n++
	}
	return n
}

// Lookup finds an attribute by name, or by a dotted path into maps (`a.b`) and
// lists (`a.0.b`). A name that contains a dot matches literally first.
func (it Item) Lookup(path string) (Value, bool) {
	if v, ok := it.get(path); ok {
		return v, true
	}
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		if v, ok := it.get(path[:i]); ok {
			if v, ok = v.Lookup(path[i+1:]); ok {
				return v, true
			}
		}
	}
	return Value{}, false
}

// get finds an attribute by its whole name.
func (it Item) get(name string) (Value, bool) {
	if it.idx == nil {
		for c := it.cursor(); c.next(); {
			if textIs(c.name, name) {
				return c.value, true
			}
		}
		return Value{}, false
	}
	sig := nameSig(name)
	for _, e := range it.idx {
		if e.sig != sig {
			continue
		}
		start := int(e.off)
		end := start + len(name) + 1 // of the closing quote, if there are no escapes
		if end >= len(it.raw) || it.raw[end] != '"' || string(it.raw[start+1:end]) != name {
			if end = jsonscan.StringEnd(it.raw, start) - 1; !textIs(it.raw[start:end+1], name) {
				continue
			}
		}
		v, _ := valueAfter(it.raw, end+1)
		return v, true
	}
	return Value{}, false
}

// All iterates over the attributes in stored order. Names are copies.
func (it Item) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for c := it.cursor(); c.next(); {
			if !yield(text(c.name), c.value) {
				return
			}
		}
	}
}

// Fields is All without copies: each name is the JSON string from the item; call
// [Name.Text] for its text. See also [Item.Walk].
func (it Item) Fields() iter.Seq2[Name, Value] {
	return func(yield func(Name, Value) bool) {
		for c := it.cursor(); c.next(); {
			if !yield(c.name, c.value) {
				return
			}
		}
	}
}

// Name is the name of an attribute as a JSON string with its quotes.
type Name []byte

// Text returns the unquoted name. It aliases n unless n has escapes.
func (n Name) Text() []byte { return textBytes(n) }

// Clone returns a copy that shares no memory with the item.
func (it Item) Clone() Item {
	if it.raw == nil {
		return Item{}
	}
	return Item{raw: append([]byte{}, it.raw...), idx: append([]entry(nil), it.idx...)}
}
