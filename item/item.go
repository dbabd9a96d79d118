// Package item reads one DynamoDB-JSON attribute map over raw bytes.
package item

import (
	"errors"
	"iter"
)

// Item is one DynamoDB-JSON attribute map: {"pk":{"S":"x"},…}. It is validated
// when it is made and read lazily: nothing is materialised until asked for.
// The zero Item is an absent one. An Item is safe for concurrent reading.
type Item struct{ raw []byte }

// Parse validates data, one attribute map and nothing else but white space
// around it. The Item aliases data.
func Parse(data []byte) (Item, error) { return Item{}, errors.New("not built") }

// Exists reports whether there is an attribute map at all (it may be empty).
func (it Item) Exists() bool { return it.raw != nil }

// Raw returns the attribute map's bytes. They must not be changed.
func (it Item) Raw() []byte { return it.raw }

// Lookup finds an attribute by name, or by a dotted path into maps (`a.b`) and
// lists (`a.0.b`). A name that itself holds a dot is found when it stands
// literally in the map.
func (it Item) Lookup(path string) (Value, bool) { return Value{}, false }

// All iterates over the attributes in stored order. Names are copies.
func (it Item) All() iter.Seq2[string, Value] { return func(func(string, Value) bool) {} }

// Decode fills into, a pointer to a struct or map, by `dynamodbav` tags, with
// the rules of the SDK's attributevalue package.
func (it Item) Decode(into any) error { return errors.New("not built") }

// AppendJSON appends the item as plain JSON: exact numbers, sets as arrays,
// binary as base64.
func (it Item) AppendJSON(dst []byte, opts ...JSONOption) []byte { return dst }

// JSONOption changes what AppendJSON writes.
type JSONOption func(*jsonOptions)

type jsonOptions struct{ sorted bool }

// SortedKeys orders the keys of every map by their bytes instead of as stored.
func SortedKeys() JSONOption { return func(o *jsonOptions) { o.sorted = true } }

// Hash returns a hash of the attribute map that does not depend on the order
// of its attributes nor on how its strings are escaped, so that it names an
// item by its keys. It differs from process to process.
func (it Item) Hash() uint64 { return 0 }

// Equal reports whether two items hold the same attributes with the same
// types and values; order of attributes, order within sets, escapes and white
// space do not count, numbers are compared as numbers.
func (it Item) Equal(o Item) bool { return false }

// Kind is the type of a Value, named by its DynamoDB tag.
type Kind uint8

const (
	Invalid Kind = iota
	S
	N
	B
	BOOL
	NULL
	M
	L
	SS
	NS
	BS
)

// Value is one typed attribute value; it aliases its item.
type Value struct {
	kind Kind
	raw  []byte // the JSON value inside the type tag
}

// Kind returns the value's type.
func (v Value) Kind() Kind { return v.kind }

// Str returns the text of an S, or the digits of an N as they stand; "" else.
// The string is a copy.
func (v Value) Str() string { return "" }

// AppendStr appends what Str returns to dst: it is Str for callers that have a
// buffer and want no copy of their own.
func (v Value) AppendStr(dst []byte) []byte { return dst }

// Bool returns the value of a BOOL; false else.
func (v Value) Bool() bool { return false }

// Equal compares two values as Item.Equal does.
func (v Value) Equal(o Value) bool { return false }
