package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Compare reports whether two documents are the same JSON, and if not, where they
// part first, such as "prices[2].amount": members in alphabetical order, whatever
// order they come in. Numbers are compared digit by digit, whatever their
// spelling: 1, 1.0 and 10e-1 are one. What is no JSON is the same only byte by
// byte.
//
// The members without are left out of both: a document's mark, which is not of
// its item.
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
	d.UseNumber() // no digit is dropped
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

// number is a decimal number in the only spelling that it has here:
// 0.digits × 10^exponent, where digits neither begins nor ends with a zero. Zero
// has no digits.
type number struct {
	negative bool
	digits   string
	exponent int64
}

// decimal reads a number of JSON, whose syntax has been checked. One whose
// exponent is beyond all use is its text; zero is zero whatever its exponent.
func decimal(text string) number {
	var n number
	s, negative := strings.CutPrefix(text, "-")
	power := "0"
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		s, power = s[:i], s[i+1:]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	n.digits = strings.TrimRight(digits, "0")
	if n.digits == "" {
		return number{}
	}
	e, err := strconv.ParseInt(power, 10, 32)
	if err != nil {
		return number{digits: text}
	}
	n.negative, n.exponent = negative, e+int64(len(digits)-len(fraction))
	return n
}
