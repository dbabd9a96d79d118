package docrules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/sluicehq/sluice/internal/jsonscan"
)

// Compare reports whether two documents are the same JSON. Otherwise path is the
// first difference, such as "prices[2].amount", in alphabetical order of members.
// Numbers compare by value: 1, 1.0 and 10e-1 are equal. Data that is not JSON must
// be equal byte by byte.
//
// Compare ignores the members in without, such as a document's mark, which is not
// part of its item.
func Compare(a, b []byte, without ...string) (path string, same bool) {
	if bytes.Equal(a, b) {
		return "", true
	}
	x, errX := parseJSON(a)
	y, errY := parseJSON(b)
	if errX != nil || errY != nil {
		return "", false
	}
	for _, v := range []any{x, y} {
		if object, ok := v.(map[string]any); ok {
			for _, name := range without {
				delete(object, name)
			}
		}
	}
	return difference(x, y)
}

func parseJSON(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // keeps all digits
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the value")
	}
	return v, nil
}

func difference(x, y any) (path string, same bool) {
	switch x := x.(type) {
	case map[string]any:
		y, ok := y.(map[string]any)
		if !ok {
			return "", false
		}
		return differentMember(x, y)
	case []any:
		y, ok := y.([]any)
		if !ok {
			return "", false
		}
		for i := range min(len(x), len(y)) {
			if path, same := difference(x[i], y[i]); !same {
				return join(fmt.Sprintf("[%d]", i), path), false
			}
		}
		if len(x) != len(y) {
			return fmt.Sprintf("[%d]", min(len(x), len(y))), false
		}
		return "", true
	case json.Number:
		y, ok := y.(json.Number)
		return "", ok && (x == y || decimal(x.String()) == decimal(y.String()))
	}
	return "", x == y // string, bool, nil
}

func differentMember(x, y map[string]any) (path string, same bool) {
	names := make([]string, 0, len(x))
	for name := range x {
		names = append(names, name)
	}
	for name := range y {
		if _, both := x[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		vx, inX := x[name]
		vy, inY := y[name]
		if !inX || !inY {
			return name, false
		}
		if path, same := difference(vx, vy); !same {
			return join(name, path), false
		}
	}
	return "", true
}

func join(step, rest string) string {
	if rest == "" || rest[0] == '[' {
		return step + rest
	}
	return step + "." + rest
}

// number is a decimal number in canonical form; see [jsonscan.Decimal].
type number struct {
	negative bool
	digits   string
	exponent int
}

// decimal parses a JSON number whose syntax was checked. A number with an absurdly
// large exponent stays text. Zero is zero whatever its exponent.
func decimal(text string) number {
	n, _ := jsonscan.ParseDecimal([]byte(text))
	switch {
	case n.Digits == 0:
		return number{}
	case n.Exp > mostExponent || n.Exp < -mostExponent:
		return number{digits: text}
	}
	return number{n.Negative, string(n.AppendDigits(nil, []byte(text))), n.Exp}
}

// mostExponent is below what ParseDecimal makes of larger ones.
const mostExponent = 1 << 19
