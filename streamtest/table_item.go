package streamtest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// maxItem is the size limit of an item, counted like DynamoDB.
const maxItem = 400 << 10

// stored converts a caller's item to the form that the table keeps.
func stored(v any) (sluice.Item, error) {
	raw, err := dynamoJSON(v)
	if err != nil {
		return sluice.Item{}, err
	}
	it, err := item.Parse(raw)
	if err != nil {
		return sluice.Item{}, fmt.Errorf("not DynamoDB JSON: %w", err)
	}
	if err := check(it); err != nil {
		return sluice.Item{}, err
	}
	if n := sizeOf(it); n > maxItem {
		return sluice.Item{}, fmt.Errorf("an item of %d bytes; DynamoDB takes %d", n, maxItem)
	}
	return mustParse(appendItem(nil, it)), nil
}

// dynamoJSON returns the DynamoDB JSON of an item in any form that Put accepts.
func dynamoJSON(v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return []byte(v), nil
	case []byte:
		return v, nil
	case sluice.Item:
		if !v.Exists() {
			return nil, errors.New("the item is absent")
		}
		return v.Raw(), nil
	case map[string]any:
		return appendPlainMap(nil, v)
	}
	return nil, fmt.Errorf("an item in a %T; want DynamoDB JSON in a string or []byte, a sluice.Item or a map[string]any", v)
}

// appendPlainMap appends plain Go values as an attribute map, sorted by name.
func appendPlainMap(dst []byte, m map[string]any) ([]byte, error) {
	dst = append(dst, '{')
	for _, name := range slices.Sorted(maps.Keys(m)) {
		var err error
		if !utf8.ValidString(name) {
			return nil, fmt.Errorf("attribute %q: its name is not UTF-8", name)
		}
		if dst, err = appendPlain(append(item.AppendString(dst, name), ':'), m[name]); err != nil {
			return nil, fmt.Errorf("attribute %q: %w", name, err)
		}
		dst = append(dst, ',')
	}
	return closeList(dst, '}'), nil
}

func appendPlain(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, `{"NULL":true}`...), nil
	case string:
		if !utf8.ValidString(v) {
			return nil, fmt.Errorf("%q is not UTF-8", v)
		}
		return append(item.AppendString(append(dst, `{"S":`...), v), '}'), nil
	case bool:
		return append(strconv.AppendBool(append(dst, `{"BOOL":`...), v), '}'), nil
	case json.Number:
		return append(item.AppendString(append(dst, `{"N":`...), string(v)), '}'), nil
	case []byte:
		return append(item.AppendString(append(dst, `{"B":`...), base64.StdEncoding.EncodeToString(v)), '}'), nil
	case map[string]any:
		dst, err := appendPlainMap(append(dst, `{"M":`...), v)
		return append(dst, '}'), err
	case []any:
		dst = append(dst, `{"L":[`...)
		for _, e := range v {
			var err error
			if dst, err = appendPlain(dst, e); err != nil {
				return nil, err
			}
			dst = append(dst, ',')
		}
		return append(closeList(dst, ']'), '}'), nil
	}
	switch rv := reflect.ValueOf(v); {
	case rv.CanInt():
		return append(strconv.AppendInt(append(dst, `{"N":"`...), rv.Int(), 10), `"}`...), nil
	case rv.CanUint():
		return append(strconv.AppendUint(append(dst, `{"N":"`...), rv.Uint(), 10), `"}`...), nil
	case rv.CanFloat():
		return append(strconv.AppendFloat(append(dst, `{"N":"`...), rv.Float(), 'g', -1, rv.Type().Bits()), `"}`...), nil
	case rv.Kind() == reflect.String:
		return appendPlain(dst, rv.String())
	}
	return nil, fmt.Errorf("a value of type %T; want a string, number, json.Number, bool, nil, []byte, []any or map[string]any", v)
}

// check refuses items that item.Parse accepts and DynamoDB does not: attributes
// without a name, empty sets and duplicate members.
func check(it sluice.Item) error {
	for name, v := range it.All() {
		if name == "" {
			return errors.New("an attribute without a name")
		}
		if err := checkValue(v); err != nil {
			return fmt.Errorf("attribute %q: %w", name, err)
		}
	}
	return nil
}

func checkValue(v item.Value) error {
	switch v.Kind() {
	case item.M:
		return check(v.Map())
	case item.L:
		for v := range v.List() {
			if err := checkValue(v); err != nil {
				return err
			}
		}
	case item.SS, item.NS, item.BS:
		seen := make(map[string]bool)
		for m := range v.Set() {
			text := string(appendPayload(nil, m))
			if seen[text] {
				return errors.New("a set that holds a member twice")
			}
			seen[text] = true
		}
		if len(seen) == 0 {
			return errors.New("an empty set")
		}
	}
	return nil
}

// appendItem appends an item in DynamoDB's form: canonical numbers, and no
// needless escapes.
func appendItem(dst []byte, it sluice.Item) []byte {
	dst = append(dst, '{')
	for name, v := range it.All() {
		dst = append(appendValue(append(item.AppendString(dst, name), ':'), v), ',')
	}
	return closeList(dst, '}')
}

// appendValue appends a value with its type.
func appendValue(dst []byte, v item.Value) []byte {
	dst = append(append(append(dst, `{"`...), v.Kind().String()...), `":`...)
	return append(appendPayload(dst, v), '}')
}

func appendPayload(dst []byte, v item.Value) []byte {
	switch v.Kind() {
	case item.S:
		return item.AppendString(dst, v.Str())
	case item.N:
		dst, _ = v.AppendText(append(dst, '"')) // without exponent, plus sign or redundant zeros
		return append(dst, '"')
	case item.B:
		return item.AppendString(dst, base64.StdEncoding.EncodeToString(v.Bytes()))
	case item.M:
		return appendItem(dst, v.Map())
	case item.L:
		dst = append(dst, '[')
		for e := range v.List() {
			dst = append(appendValue(dst, e), ',')
		}
		return closeList(dst, ']')
	case item.SS, item.NS, item.BS:
		dst = append(dst, '[')
		for e := range v.Set() {
			dst = append(appendPayload(dst, e), ',')
		}
		return closeList(dst, ']')
	}
	return append(dst, v.Raw()...)
}

func closeList(dst []byte, end byte) []byte {
	if dst[len(dst)-1] == ',' {
		dst = dst[:len(dst)-1]
	}
	return append(dst, end)
}

func mustParse(b []byte) sluice.Item {
	it, err := item.Parse(b)
	if err != nil {
		panic(fmt.Sprintf("streamtest: %v in %s", err, b))
	}
	return it
}
