package tabletest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// expression evaluates the expressions of one Op. It supports comparisons by = and
// <>, of integers also by < and <=, attribute_exists, attribute_not_exists, AND
// and OR without parentheses, and the updates SET to values, REMOVE, and ADD of
// integers. It panics at everything else, and at unused names and values, which the
// service refuses: they are mistakes of the code that is tested.
type expression struct {
	op   dynamo.Op
	used map[string]bool
}

var (
	call    = regexp.MustCompile(`^(attribute_exists|attribute_not_exists)\s*\(\s*([#\w]+)\s*\)$`)
	compare = regexp.MustCompile(`^([#\w]+)\s*(=|<>|<=|<)\s*(:\w+)$`)
	assign  = regexp.MustCompile(`^([#\w]+)\s*=\s*(:\w+)$`)
	add     = regexp.MustCompile(`^([#\w]+)\s+(:\w+)$`)
	clause  = regexp.MustCompile(`\b(SET|REMOVE|ADD)\b`)
)

func (e *expression) holds(it sluice.Item) bool {
	if e.op.Condition == "" {
		return true
	}
	any := false
	for or := range strings.SplitSeq(e.op.Condition, " OR ") {
		all := true
		for and := range strings.SplitSeq(or, " AND ") {
			all = e.term(strings.TrimSpace(and), it) && all
		}
		any = any || all
	}
	return any
}

func (e *expression) term(s string, it sluice.Item) bool {
	if m := call.FindStringSubmatch(s); m != nil {
		_, exists := it.Lookup(e.name(m[2]))
		return exists == (m[1] == "attribute_exists")
	}
	m := compare.FindStringSubmatch(s)
	if m == nil {
		panic(fmt.Sprintf("tabletest does not know the condition %q", s))
	}
	v, exists := it.Lookup(e.name(m[1]))
	want := parse(e.value(m[3]))
	if m[2] == "<" || m[2] == "<=" {
		n, ok := v.Int64()
		limit, numeric := want.Int64()
		if !numeric || exists && !ok {
			panic(fmt.Sprintf("tabletest compares whole numbers only, not as %q wants", s))
		}
		return exists && (n < limit || m[2] == "<=" && n == limit)
	}
	equal := exists && v.Equal(want)
	return equal == (m[2] == "=")
}

func (e *expression) update(it sluice.Item) sluice.Item {
	attrs := make(map[string]string) // raw by name
	var order []string
	for name, v := range it.All() {
		attrs[name] = fmt.Sprintf(`{"%s":%s}`, v.Kind(), v.Raw())
		order = append(order, name)
	}
	at := clause.FindAllStringIndex(e.op.Update, -1)
	if len(at) == 0 || strings.TrimSpace(e.op.Update[:at[0][0]]) != "" {
		panic(fmt.Sprintf("tabletest does not know the update %q", e.op.Update))
	}
	for i, span := range at {
		end := len(e.op.Update)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		verb := e.op.Update[span[0]:span[1]]
		for part := range strings.SplitSeq(e.op.Update[span[1]:end], ",") {
			part = strings.TrimSpace(part)
			if verb == "REMOVE" {
				delete(attrs, e.name(part))
				continue
			}
			form := assign
			if verb == "ADD" {
				form = add
			}
			m := form.FindStringSubmatch(part)
			if m == nil {
				panic(fmt.Sprintf("tabletest does not know the update %q", part))
			}
			name, value := e.name(m[1]), e.value(m[2])
			if verb == "ADD" {
				value = sum(attrs[name], value)
			}
			attrs[name] = value
			if !slices.Contains(order, name) {
				order = append(order, name)
			}
		}
	}
	var b []string
	for _, name := range order {
		if raw, ok := attrs[name]; ok {
			b = append(b, fmt.Sprintf("%q:%s", name, raw))
		}
	}
	return parse(`{"M":{` + strings.Join(b, ",") + `}}`).Map()
}

// sum adds by to there; "" counts as 0.
func sum(there, by string) string {
	n, ok := parse(by).Int64()
	old, whole := parse(cmp.Or(there, `{"N":"0"}`)).Int64()
	if !ok || !whole {
		panic(fmt.Sprintf("tabletest adds whole numbers, not %s to %s", by, there))
	}
	return fmt.Sprintf(`{"N":"%d"}`, old+n)
}

func (e *expression) name(s string) string {
	if !strings.HasPrefix(s, "#") {
		return s
	}
	e.used[s] = true
	if e.op.Names[s] == "" {
		panic("no name for " + s)
	}
	return e.op.Names[s]
}

// value returns a value as DynamoDB writes it.
func (e *expression) value(s string) string {
	e.used[s] = true
	v, ok := e.op.Values[s]
	if !ok {
		panic("no value for " + s)
	}
	switch v := v.(type) {
	case string:
		return string(item.AppendString([]byte(`{"S":`), v)) + `}`
	case bool:
		return fmt.Sprintf(`{"BOOL":%t}`, v)
	case int, int64, int32, json.Number:
		return fmt.Sprintf(`{"N":"%v"}`, v)
	case []byte:
		return `{"B":"` + base64.StdEncoding.EncodeToString(v) + `"}`
	case nil:
		return `{"NULL":true}`
	case item.Value:
		return fmt.Sprintf(`{"%s":%s}`, v.Kind(), v.Raw())
	case sluice.Item:
		return `{"M":` + string(v.Raw()) + `}`
	}
	panic(fmt.Sprintf("value %s is a %T", s, v))
}

// refuseUnused refuses what no expression uses, as the service does.
func (e *expression) refuseUnused() {
	for s := range e.op.Names {
		if !e.used[s] {
			panic(fmt.Sprintf("name %s is not used", s))
		}
	}
	for s := range e.op.Values {
		if !e.used[s] {
			panic(fmt.Sprintf("value %s is not used", s))
		}
	}
}

func parse(raw string) item.Value {
	it, err := item.Parse([]byte(`{"v":` + raw + `}`))
	if err != nil {
		panic(err)
	}
	v, _ := it.Lookup("v")
	return v
}
