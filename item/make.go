package item

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// Attribute is a name with a value, for [Of]; [String], [Number] and [Binary]
// make the kinds that keys are made of.
type Attribute struct {
	name string
	kind Kind
	text string
}

// String is a string attribute.
func String(name, value string) Attribute { return Attribute{name, S, value} }

// Number is a number attribute; value is its decimal form.
func Number(name, value string) Attribute { return Attribute{name, N, value} }

// Binary is a binary attribute.
func Binary(name string, value []byte) Attribute {
	return Attribute{name, B, base64.StdEncoding.EncodeToString(value)}
}

// Of makes an Item, such as a key:
//
//	item.Of(item.String("PK", "u-1"), item.Number("version", "3"))
//
// It panics when the attributes make no item: a name that occurs twice, or a
// Number that is none. A number from outside is put through Parse.
func Of(attrs ...Attribute) Item {
	dst := []byte{'{'}
	for i, a := range attrs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, a.name), `:{"`...)
		dst = append(append(dst, a.kind.String()...), `":`...)
		dst = append(appendString(dst, a.text), '}')
	}
	it, err := Parse(append(dst, '}'))
	if err != nil {
		panic(fmt.Sprintf("item: Of: %v", err))
	}
	return it
}

// Only returns the attributes of it that are named, in that order, sharing no
// memory with it; those that it does not have are left out. Of an item and the
// names of its table's key attributes it makes the item's key.
func (it Item) Only(names ...string) Item {
	dst := []byte{'{'}
	for _, name := range names {
		v, ok := it.get(name)
		if !ok {
			continue
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), `:{"`...)
		dst = append(append(dst, v.Kind().String()...), `":`...)
		dst = append(append(dst, v.Raw()...), '}')
	}
	only, err := Parse(append(dst, '}'))
	if err != nil {
		panic(fmt.Sprintf("item: Only: %v", err)) // of an item that was valid
	}
	return only
}

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // a string never fails; invalid UTF-8 becomes U+FFFD
	return append(dst, quoted...)
}
