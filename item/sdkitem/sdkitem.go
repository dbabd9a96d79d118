// Package sdkitem converts items to and from the attribute values of the AWS SDK's
// dynamodb package, without loss.
//
// It is a package of its own because importing the SDK's types slows down every
// program start. A Lambda function that only reads stream records does not need
// it.
package sdkitem

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/item"
)

// Map converts the item to the SDK's type. The result shares no memory with it;
// nil for an absent item.
func Map(it item.Item) map[string]types.AttributeValue {
	if !it.Exists() {
		return nil
	}
	m := make(map[string]types.AttributeValue, it.Len())
	for name, v := range it.All() {
		m[name] = Value(v)
	}
	return m
}

// Value converts v to the SDK's type. The result shares no memory with v; nil for
// the zero Value.
func Value(v item.Value) types.AttributeValue {
	switch v.Kind() {
	case item.S:
		return &types.AttributeValueMemberS{Value: v.Str()}
	case item.N:
		return &types.AttributeValueMemberN{Value: v.Str()}
	case item.B:
		return &types.AttributeValueMemberB{Value: v.Bytes()}
	case item.BOOL:
		return &types.AttributeValueMemberBOOL{Value: v.Bool()}
	case item.NULL:
		return &types.AttributeValueMemberNULL{Value: string(v.Raw()) == "true"}
	case item.M:
		return &types.AttributeValueMemberM{Value: Map(v.Map())}
	case item.L:
		l := make([]types.AttributeValue, 0, v.Len())
		for e := range v.List() {
			l = append(l, Value(e))
		}
		return &types.AttributeValueMemberL{Value: l}
	case item.SS:
		return &types.AttributeValueMemberSS{Value: texts(v)}
	case item.NS:
		return &types.AttributeValueMemberNS{Value: texts(v)}
	case item.BS:
		l := make([][]byte, 0, v.Len())
		for e := range v.Set() {
			l = append(l, e.Bytes())
		}
		return &types.AttributeValueMemberBS{Value: l}
	}
	return nil
}

func texts(v item.Value) []string {
	l := make([]string, 0, v.Len())
	for e := range v.Set() {
		l = append(l, e.Str())
	}
	return l
}

// FromMap converts the SDK's attribute map to an item, with sorted names. A nil
// map is the absent item. FromMap refuses nil values, text that is not UTF-8, and
// everything that [item.Parse] refuses.
func FromMap(m map[string]types.AttributeValue) (item.Item, error) {
	if m == nil {
		return item.Item{}, nil
	}
	b, err := appendMap(nil, m)
	if err != nil {
		return item.Item{}, err
	}
	return item.Parse(b)
}

// Decode decodes the item by the SDK's attributevalue package, with its options.
// Use it for types that implement the SDK's Unmarshaler, which [item.Item.Decode]
// refuses. For other types [item.Item.Decode] is several times faster.
func Decode(it item.Item, into any, opts ...func(*attributevalue.DecoderOptions)) error {
	if !it.Exists() {
		return errors.New("there is no item to decode: the record has no such image")
	}
	return attributevalue.UnmarshalMapWithOptions(Map(it), into, opts...)
}

func appendMap(dst []byte, m map[string]types.AttributeValue) (_ []byte, err error) {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendString(dst, name); err != nil {
			return nil, fmt.Errorf("attribute name: %w", err)
		}
		dst = append(dst, ':')
		if dst, err = appendValue(dst, m[name]); err != nil {
			return nil, fmt.Errorf("attribute %q: %w", name, err)
		}
	}
	return append(dst, '}'), nil
}

func appendValue(dst []byte, av types.AttributeValue) ([]byte, error) {
	if rv := reflect.ValueOf(av); rv.Kind() == reflect.Pointer && rv.IsNil() {
		return nil, fmt.Errorf("nil %T", av)
	}
	var err error
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		dst, err = appendString(append(dst, `{"S":`...), v.Value)
	case *types.AttributeValueMemberN:
		dst, err = appendString(append(dst, `{"N":`...), v.Value)
	case *types.AttributeValueMemberB:
		dst, err = appendBytes(append(dst, `{"B":`...), v.Value)
	case *types.AttributeValueMemberBOOL:
		dst = strconv.AppendBool(append(dst, `{"BOOL":`...), v.Value)
	case *types.AttributeValueMemberNULL:
		dst = strconv.AppendBool(append(dst, `{"NULL":`...), v.Value)
	case *types.AttributeValueMemberM:
		dst, err = appendMap(append(dst, `{"M":`...), v.Value)
	case *types.AttributeValueMemberL:
		dst, err = appendList(append(dst, `{"L":`...), v.Value, appendValue)
	case *types.AttributeValueMemberSS:
		dst, err = appendList(append(dst, `{"SS":`...), v.Value, appendString)
	case *types.AttributeValueMemberNS:
		dst, err = appendList(append(dst, `{"NS":`...), v.Value, appendString)
	case *types.AttributeValueMemberBS:
		dst, err = appendList(append(dst, `{"BS":`...), v.Value, appendBytes)
	default:
		return nil, fmt.Errorf("unsupported attribute value %T", av)
	}
	return append(dst, '}'), err
}

func appendList[T any](dst []byte, list []T, element func([]byte, T) ([]byte, error)) (_ []byte, err error) {
	dst = append(dst, '[')
	for i, e := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = element(dst, e); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return append(dst, ']'), nil
}

func appendBytes(dst, data []byte) ([]byte, error) {
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), data), '"'), nil
}

func appendString(dst []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return nil, errors.New("text is not valid UTF-8")
	}
	return item.AppendString(dst, s), nil
}
