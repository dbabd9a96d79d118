package item

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// FromJSON converts one plain JSON object to an Item. Strings become S, numbers N
// with all their digits, booleans BOOL, null NULL, arrays L and objects M. The
// Item shares no memory with data. FromJSON refuses numbers of more than 38 digits
// or out of DynamoDB's range, duplicate keys, and depth over 32.
func FromJSON(data []byte) (Item, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	tok, err := d.Token()
	if err == nil && tok != json.Delim('{') {
		return Item{}, errors.New("it is no JSON object but " + beginning(tok))
	}
	if err != nil {
		return Item{}, notJSON(err)
	}
	dst, err := appendMembers(nil, d, '{', 0)
	if err != nil {
		return Item{}, notJSON(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Item{}, fmt.Errorf("there is data after the JSON object, at byte %d", d.InputOffset())
	}
	return Parse(dst)
}

// beginning describes a value by its first token, without its data.
func beginning(tok json.Token) string {
	switch tok.(type) {
	case json.Delim:
		return "an array"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case bool:
		return "a boolean"
	}
	return "null"
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("it is no JSON object: %w", err)
}

// maxJSONDepth bounds recursion. It is deeper than Parse allows.
const maxJSONDepth = 64

// appendMembers appends the object or array that d has entered, without its tag.
func appendMembers(dst []byte, d *json.Decoder, open json.Delim, depth int) ([]byte, error) {
	if depth > maxJSONDepth {
		return nil, errors.New("it is nested too deep")
	}
	dst = append(dst, byte(open))
	for first := true; d.More(); first = false {
		if !first {
			dst = append(dst, ',')
		}
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			text, _ := name.(string) // a member's name is a string
			dst = append(appendString(dst, text), ':')
		}
		var err error
		if dst, err = appendValue(dst, d, depth); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()                   // the closing brace or bracket
	return append(dst, byte(open)+2), err // '}' follows '{' by two, as ']' follows '['
}

// appendValue appends the next value of d with its tag.
func appendValue(dst []byte, d *json.Decoder, depth int) ([]byte, error) {
	tok, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := tok.(type) {
	case string:
		return append(appendString(append(dst, `{"S":`...), v), '}'), nil
	case json.Number:
		return append(appendString(append(dst, `{"N":`...), v.String()), '}'), nil
	case bool:
		return append(strconv.AppendBool(append(dst, `{"BOOL":`...), v), '}'), nil
	case json.Delim:
		tag := `{"L":`
		if v == '{' {
			tag = `{"M":`
		}
		if dst, err = appendMembers(append(dst, tag...), d, v, depth+1); err != nil {
			return nil, err
		}
		return append(dst, '}'), nil
	}
	return append(dst, `{"NULL":true}`...), nil
}

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // never fails; invalid UTF-8 becomes U+FFFD
	return append(dst, quoted...)
}
