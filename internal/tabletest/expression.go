package tabletest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/item/sdkitem"
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
	want := read(e.value(m[3]))
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
	attrs := sdkitem.Map(it)
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
		}
	}
	return parse(attrs)
}

// sum adds by to there; nil counts as 0.
func sum(there, by types.AttributeValue) types.AttributeValue {
	if there == nil {
		there = &types.AttributeValueMemberN{Value: "0"}
	}
	old, whole := read(there).Int64()
	n, ok := read(by).Int64()
	if !ok || !whole {
		panic(fmt.Sprintf("tabletest adds whole numbers, not %s to %s", read(by).Raw(), read(there).Raw()))
	}
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(old+n, 10)}
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

func (e *expression) value(s string) types.AttributeValue {
	e.used[s] = true
	v, ok := e.op.Values[s]
	if !ok {
		panic("no value for " + s)
	}
	switch v := v.(type) {
	case string, bool, int, int64, int32, []byte, nil:
		value, err := attributevalue.Marshal(v)
		if err != nil {
			panic(err)
		}
		return value
	case json.Number:
		return &types.AttributeValueMemberN{Value: v.String()}
	case item.Value:
		return sdkitem.Value(v)
	case sluice.Item:
		return &types.AttributeValueMemberM{Value: sdkitem.Map(v)}
	default:
		panic(fmt.Sprintf("value %s is a %T", s, v))
	}
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

func read(v types.AttributeValue) item.Value {
	got, _ := parse(map[string]types.AttributeValue{"v": v}).Lookup("v")
	return got
}

func parse(attrs map[string]types.AttributeValue) sluice.Item {
	it, err := sdkitem.FromMap(attrs)
	if err != nil {
		panic(err)
	}
	return it
}
