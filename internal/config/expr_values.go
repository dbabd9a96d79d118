package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/vm/runtime"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// decimal is a number too large or too exact for int and float64: its digits, without
// exponent and needless zeros. Comparisons of decimals are exact.
type decimal string

// numberOf returns an int if it fits, a float64 if its shortest decimal form is the
// number, else a decimal.
func numberOf(v item.Value) any {
	if i, ok := v.Int64(); ok {
		return int(i)
	}
	var buf [64]byte
	text, _ := v.AppendText(buf[:0])
	if i, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return int(i)
	}
	if f, ok := v.Float64(); ok && !math.IsInf(f, 0) {
		var short [64]byte
		if string(strconv.AppendFloat(short[:0], f, 'f', -1, 64)) == string(text) {
			return f
		}
	}
	return decimal(text)
}

// operators replace the language's own, which fail for absent values.
var operators = []*builtin.Function{
	ordering("<", func(c int) bool { return c < 0 }),
	ordering("<=", func(c int) bool { return c <= 0 }),
	ordering(">", func(c int) bool { return c > 0 }),
	ordering(">=", func(c int) bool { return c >= 0 }),
	texts("contains", strings.Contains),
	texts("startsWith", strings.HasPrefix),
	texts("endsWith", strings.HasSuffix),
	function("matches", reflect.TypeFor[func(*work, any, *pattern) bool](), func(args ...any) (any, error) {
		if args[1] == nil {
			return false, nil
		}
		s, ok := args[1].(string)
		if !ok {
			return nil, fmt.Errorf("%s matches: want text", kindOf(args[1]))
		}
		p := args[2].(*pattern)
		if err := args[0].(*work).spend(len(s) * p.cost); err != nil {
			return nil, err
		}
		return p.MatchString(s), nil
	}),
	function("+", reflect.TypeFor[func(*work, any, any) any](), func(args ...any) (any, error) {
		return args[0].(*work).add(args[1], args[2])
	}),
	arithmetic("-", subtract),
	arithmetic("*", multiply),
	// The language's own split returns a []string; lists here are []any.
	function("split", reflect.TypeFor[func(*work, any, string, ...int) []any](), func(args ...any) (any, error) {
		s, ok := args[1].(string)
		if !ok {
			return nil, fmt.Errorf("split of %s: want text", kindOf(args[1]))
		}
		most := -1
		if len(args) > 3 {
			most = args[3].(int)
		}
		sep := args[2].(string)
		many := strings.Count(s, sep) + 1
		if most >= 0 {
			many = min(many, most)
		}
		if err := args[0].(*work).spend(len(s) + many*perPart); err != nil {
			return nil, err
		}
		parts := strings.SplitN(s, sep, most)
		all := make([]any, len(parts))
		for i, part := range parts {
			all[i] = part
		}
		return all, nil
	}),
	function("in", reflect.TypeFor[func(*work, any, any) bool](), func(args ...any) (any, error) {
		return args[0].(*work).in(args[1], args[2])
	}),
	function("step", reflect.TypeFor[func(*work, int, any) any](), func(args ...any) (any, error) {
		return args[2], args[0].(*work).spend(args[1].(int))
	}),
	function("weigh", reflect.TypeFor[func(*work, any) any](), func(args ...any) (any, error) {
		return args[1], args[0].(*work).spend(weight(args[1]))
	}),
	changing("lower", strings.ToLower),
	changing("upper", strings.ToUpper),
	function("trim", reflect.TypeFor[func(*work, string, ...string) string](), func(args ...any) (any, error) {
		var texts [2]string
		for i, arg := range args[1:] {
			s, ok := arg.(string)
			if !ok || i == len(texts) {
				return nil, fmt.Errorf("trim of %s: want text, and at most one more of letters", kindOf(arg))
			}
			texts[i] = s
		}
		s, letters := texts[0], texts[1]
		if len(args) == 2 {
			return strings.TrimSpace(s), args[0].(*work).spend(len(s))
		}
		cost := len(s) + len(letters)
		if strings.ContainsFunc(letters, func(r rune) bool { return r >= utf8.RuneSelf }) {
			cost = len(s) * len(letters) // each letter of s is compared with the letters
		}
		if err := args[0].(*work).spend(cost); err != nil {
			return nil, err
		}
		return strings.Trim(s, letters), nil
	}),
	function(".", reflect.TypeFor[func(any, any) any](), func(args ...any) (any, error) { return get(args[0], args[1]) }),
	function("?", reflect.TypeFor[func(any) bool](), func(args ...any) (any, error) {
		switch v := args[0].(type) {
		case bool:
			return v, nil
		case nil:
			return false, nil
		}
		return nil, fmt.Errorf("%s is neither true nor false", kindOf(args[0]))
	}),
}

// pattern is a regular expression with its cost for a byte of text.
type pattern struct {
	*regexp.Regexp
	cost int
}

func newPattern(re *regexp.Regexp) *pattern {
	p := &pattern{re, 1}
	if parsed, err := syntax.Parse(re.String(), syntax.Perl); err == nil {
		if prog, err := syntax.Compile(parsed.Simplify()); err == nil {
			p.cost += len(prog.Inst) / 8 // a match tries few of them at a time
		}
	}
	return p
}

func isTest(name string) bool {
	return name != "." && name != "" && strings.Contains(" < <= > >= contains startsWith endsWith matches in ? ", " "+name+" ")
}

func function(name string, t reflect.Type, f func(...any) (any, error)) *builtin.Function {
	return &builtin.Function{Name: name, Func: f, Types: []reflect.Type{t}}
}

func ordering(name string, holds func(c int) bool) *builtin.Function {
	return function(name, reflect.TypeFor[func(any, any) bool](), func(args ...any) (any, error) {
		a, b := args[0], args[1]
		if a == nil || b == nil {
			return false, nil
		}
		c, ok := compare(a, b)
		if !ok {
			return nil, fmt.Errorf("%s %s %s: want two numbers or two texts", kindOf(a), name, kindOf(b))
		}
		return holds(c), nil
	})
}

func texts(name string, holds func(s, t string) bool) *builtin.Function {
	return function(name, reflect.TypeFor[func(any, any) bool](), func(args ...any) (any, error) {
		if args[0] == nil || args[1] == nil {
			return false, nil
		}
		s, isText := args[0].(string)
		t, ok := args[1].(string)
		if !isText || !ok {
			return nil, fmt.Errorf("%s %s %s: want two texts (whether a list has something says in)", kindOf(args[0]), name, kindOf(args[1]))
		}
		return holds(s, t), nil
	})
}

// changing is a function from text to text.
func changing(name string, change func(string) string) *builtin.Function {
	return function(name, reflect.TypeFor[func(*work, string) string](), func(args ...any) (any, error) {
		s, ok := args[1].(string)
		if !ok {
			return nil, fmt.Errorf("%s of %s: want text", name, kindOf(args[1]))
		}
		if err := args[0].(*work).spend(3 * len(s)); err != nil { // building the text reallocates it
			return nil, err
		}
		return change(s), nil
	})
}

func arithmetic(name string, of func(a, b any) (any, error)) *builtin.Function {
	return function(name, reflect.TypeFor[func(any, any) any](), func(args ...any) (any, error) { return of(args[0], args[1]) })
}

// maxJoined bounds the results of + in bytes: repeated doubling soon exceeds memory.
const maxJoined = 1 << 20

var errOverflow = errors.New("the result is no integer of 64 bits")

func (w *work) add(a, b any) (any, error) {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			n := len(x) + len(y)
			if n > maxJoined {
				return nil, fmt.Errorf("+ makes a text of %d bytes, more than %d", n, maxJoined)
			}
			if err := w.spend(n); err != nil {
				return nil, err
			}
		}
	case int:
		if y, ok := b.(int); ok && (x+y > x) != (y > 0) {
			return nil, errOverflow
		}
	}
	return runtime.Add(a, b), nil
}

func subtract(a, b any) (any, error) {
	if x, ok := a.(int); ok {
		if y, ok := b.(int); ok && (x-y < x) != (y > 0) {
			return nil, errOverflow
		}
	}
	return runtime.Subtract(a, b), nil
}

func multiply(a, b any) (any, error) {
	if x, ok := a.(int); ok {
		if y, ok := b.(int); ok && x != 0 && (x*y/x != y || x == -1 && y == math.MinInt) {
			return nil, errOverflow
		}
	}
	return runtime.Multiply(a, b), nil
}

// compare orders two numbers by their decimal forms (0.1 is a tenth), or two texts by
// their bytes.
func compare(a, b any) (c int, ok bool) {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return strings.Compare(x, y), ok
	case int:
		if y, ok := b.(int); ok {
			return cmp.Compare(x, y), true
		}
	case float64: // two shortest decimal forms have the same order as their values
		if y, ok := b.(float64); ok && !math.IsNaN(x-y) {
			return cmp.Compare(x, y), true
		}
	}
	x, y := decimals(a), decimals(b)
	if x == "" || y == "" {
		return 0, false
	}
	return compareDecimals(x, y), true
}

// decimals returns the digits of a number, without exponent and needless zeros. NaN and
// infinity have none.
func decimals(v any) string {
	switch v := v.(type) {
	case int:
		return strconv.Itoa(v)
	case float64:
		switch {
		case math.IsNaN(v - v): // NaN or infinity
			return ""
		case v == 0: // -0, too
			return "0"
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	case decimal:
		return string(v)
	}
	return ""
}

func compareDecimals(a, b string) int {
	x, under := strings.CutPrefix(a, "-")
	y, negative := strings.CutPrefix(b, "-")
	switch {
	case under && negative:
		x, y = y, x
	case under:
		return -1
	case negative:
		return 1
	}
	xWhole, xRest, _ := strings.Cut(x, ".")
	yWhole, yRest, _ := strings.Cut(y, ".")
	return cmp.Or(cmp.Compare(len(xWhole), len(yWhole)), cmp.Compare(xWhole, yWhole), cmp.Compare(xRest, yRest))
}

// equal compares as == does, for elements of a list.
func equal(a, b any) bool {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return ok && x == y
	case int, float64, decimal:
		c, ok := compare(a, b)
		return ok && c == 0
	}
	return reflect.DeepEqual(a, b)
}

func in(needle, all any) (bool, error) {
	switch all := all.(type) {
	case nil:
		return false, nil
	case []any:
		for _, one := range all {
			if equal(needle, one) {
				return true, nil
			}
		}
		return false, nil
	case map[string]any:
		name, ok := needle.(string)
		if !ok {
			return false, nil
		}
		_, has := all[name]
		return has, nil
	}
	return false, fmt.Errorf("in %s: want a list, a set or a map", kindOf(all))
}

// get returns an element of a map or list; nil if it is missing.
func get(from, at any) (any, error) {
	switch from := from.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		if name, ok := at.(string); ok {
			return from[name], nil
		}
		return nil, nil
	case []any:
		i, ok := at.(int)
		if i < 0 {
			i += len(from)
		}
		if !ok || i < 0 || i >= len(from) {
			return nil, nil
		}
		return from[i], nil
	}
	return nil, nil
}

// kindOf returns the name of a value's type.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case string:
		return "a text"
	case int, float64, decimal:
		return "a number"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return "a value"
}

// valueOf is an attribute as expressions see it: text, int, float64, decimal, bool,
// nil, []any (lists and sets) and map[string]any; binary is its base64. The value is
// incomplete if the work is spent.
func (w *work) valueOf(v item.Value) any {
	switch v.Kind() {
	case item.S:
		return v.Str()
	case item.N:
		return numberOf(v)
	case item.BOOL:
		return v.Bool()
	case item.B:
		text, _ := v.AppendText(nil)
		return string(text)
	case item.M:
		return w.mapOf(v.Map())
	case item.L:
		all := make([]any, 0, v.Len())
		for one := range v.List() {
			all = append(all, w.valueOf(one))
		}
		return all
	case item.SS, item.NS, item.BS:
		all := make([]any, 0, v.Len())
		for one := range v.Set() {
			all = append(all, w.valueOf(one))
		}
		sortSet(all) // a set has no order: two images may list its elements differently
		return all
	}
	return nil
}

func (w *work) mapOf(it sluice.Item) any {
	if !it.Exists() || w.spend(perMap+perElement*it.Len()) != nil {
		return nil
	}
	all := make(map[string]any, it.Len())
	for name, v := range it.All() {
		all[name] = w.valueOf(v)
	}
	return all
}

// sortSet sorts texts or numbers. It compares numbers of several types by their digits,
// and makes the digits of a number once.
func sortSet(all []any) {
	same := func(a any) bool { return reflect.TypeOf(a) == reflect.TypeOf(all[0]) }
	if len(all) == 0 || !slices.ContainsFunc(all, func(a any) bool { return !same(a) }) {
		slices.SortFunc(all, func(a, b any) int { c, _ := compare(a, b); return c })
		return
	}
	type number struct {
		digits string
		value  any
	}
	numbers := make([]number, len(all))
	for i, one := range all {
		numbers[i] = number{decimals(one), one}
	}
	slices.SortFunc(numbers, func(a, b number) int { return compareDecimals(a.digits, b.digits) })
	for i, n := range numbers {
		all[i] = n.value
	}
}
