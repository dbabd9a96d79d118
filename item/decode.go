package item

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Unmarshaler lets a type decode itself. Byte slices taken from v are valid only
// until UnmarshalAttribute returns.
type Unmarshaler interface {
	UnmarshalAttribute(v Value) error
}

// DecodeError says which attribute does not fit which Go type.
type DecodeError struct {
	Path string       // of the attribute, dotted; empty for the map itself
	Type reflect.Type // Go type; may be nil
	Err  error
}

func (e *DecodeError) Error() string {
	var sb strings.Builder
	sb.WriteString("cannot decode ")
	if e.Path == "" {
		sb.WriteString("the item")
	} else {
		fmt.Fprintf(&sb, "attribute %q", e.Path)
	}
	if e.Type != nil {
		fmt.Fprintf(&sb, " into %s", e.Type)
	}
	return sb.String() + ": " + e.Err.Error()
}

func (e *DecodeError) Unwrap() error { return e.Err }

// within prepends a step to the path of a DecodeError.
func within(step string, err error) error {
	if e, ok := err.(*DecodeError); ok {
		if e.Path == "" {
			e.Path = step
		} else {
			e.Path = step + "." + e.Path
		}
	}
	return err
}

// Decode fills into, a pointer to a struct or map, by `dynamodbav` tags. The rules
// are those of the SDK's attributevalue package:
//
//   - A field takes the attribute of its tag's name or its own name, else of a
//     name that differs only in case. The tag options string and unixtime, and
//     embedded structs, work as in the SDK.
//   - time.Time takes RFC 3339 text or Unix seconds. NULL is the zero value.
//   - An any takes string, float64, bool, []byte, []any, map[string]any,
//     []string, []float64 or [][]byte.
//   - If these rules refuse a type, its encoding.TextUnmarshaler takes an S, and
//     its encoding.BinaryUnmarshaler a B.
//
// A type may implement [Unmarshaler]. Decode refuses a type that implements the
// SDK's own Unmarshaler: use package sdkitem.
//
// Nothing in into aliases the item. An error is a [*DecodeError]; into may then be
// partly filled.
func (it Item) Decode(into any) error {
	if !it.Exists() {
		return &DecodeError{Err: errors.New("there is no item: the record has no such image")}
	}
	return Value{kind: M, raw: it.raw}.Decode(into)
}

// Decode fills into, a non-nil pointer, as Item.Decode does.
func (v Value) Decode(into any) error {
	rv := reflect.ValueOf(into)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return &DecodeError{Type: reflect.TypeOf(into), Err: errors.New("a non-nil pointer is needed")}
	}
	if v.kind == Invalid {
		return &DecodeError{Type: rv.Type().Elem(), Err: errors.New("there is no value")}
	}
	rv = rv.Elem()
	return planOf(rv.Type(), 0)(v, rv)
}

// plan fills an addressable Go value of one type.
type plan func(v Value, rv reflect.Value) error

func mismatch(v Value, rv reflect.Value) error {
	return &DecodeError{Type: rv.Type(), Err: fmt.Errorf("it is of type %s", v.kind)}
}

func failed(rv reflect.Value, err error) error {
	if err == nil {
		return nil
	}
	return &DecodeError{Type: rv.Type(), Err: err}
}

var (
	unmarshalerType       = reflect.TypeFor[Unmarshaler]()
	textUnmarshalerType   = reflect.TypeFor[encoding.TextUnmarshaler]()
	binaryUnmarshalerType = reflect.TypeFor[encoding.BinaryUnmarshaler]()
	timeType              = reflect.TypeFor[time.Time]()
)

// sdkMethod is the method of the SDK's Unmarshaler. Decode looks for it by name:
// importing its parameter type would slow down every program start.
const sdkMethod = "UnmarshalDynamoDBAttributeValue"

func unmarshal(v Value, rv reflect.Value) error {
	err := rv.Addr().Interface().(Unmarshaler).UnmarshalAttribute(v)
	if _, ok := err.(*DecodeError); ok {
		return err
	}
	return failed(rv, err)
}

func refuseSDK(_ Value, rv reflect.Value) error {
	return failed(rv, errors.New("it implements the SDK's Unmarshaler ("+sdkMethod+"): decode with package sdkitem, or implement item.Unmarshaler"))
}

// withNull sets the zero value for a NULL.
func withNull(p plan) plan {
	return func(v Value, rv reflect.Value) error {
		if v.kind == NULL {
			rv.SetZero()
			return nil
		}
		return p(v, rv)
	}
}

// withEncoding uses the type's encoding unmarshalers for values that p refuses.
func withEncoding(t reflect.Type, p plan) plan {
	ptr := reflect.PointerTo(t)
	text, binary := ptr.Implements(textUnmarshalerType), ptr.Implements(binaryUnmarshalerType)
	if !text && !binary {
		return p
	}
	return func(v Value, rv reflect.Value) error {
		switch {
		case text && v.kind == S:
			return failed(rv, rv.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(v.Str())))
		case binary && v.kind == B:
			return failed(rv, rv.Addr().Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(v.Bytes()))
		}
		return p(v, rv)
	}
}
