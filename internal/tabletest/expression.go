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
// integers. It refuses everything else, and unused names and values, like the
// service.
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

func (e *expression) holds(it sluice.Item) (bool, error) {
	if e.op.Condition == "" {
		return true, nil
	}
	any := false
	for or := range strings.SplitSeq(e.op.Condition, " OR ") {
		all := true
		for and := range strings.SplitSeq(or, " AND ") {
			ok, err := e.term(strings.TrimSpace(and), it)
			if err != nil {
				return false, err
			}
			all = all && ok
		}
		any = any || all
	}
	return any, nil
}

func (e *expression) term(s string, it sluice.Item) (bool, error) {
	if m := call.FindStringSubmatch(s); m != nil {
		name, err := e.name(m[2])
		_, exists := it.Lookup(name)
		return exists == (m[1] == "attribute_exists"), err
	}
	m := compare.FindStringSubmatch(s)
	if m == nil {
		return false, fmt.Errorf("tabletest does not know the condition %q", s)
	}
	name, err := e.name(m[1])
	if err != nil {
		return false, err
	}
	want, err := e.value(m[3])
	if err != nil {
		return false, err
	}
	v, exists := it.Lookup(name)
	if m[2] == "<" || m[2] == "<=" {
		n, ok := v.Int64()
		limit, numeric := read(want).Int64()
		if !numeric || exists && !ok {
			return false, fmt.Errorf("tabletest compares whole numbers only, not as %q wants", s)
		}
		return exists && (n < limit || m[2] == "<=" && n == limit), nil
	}
	equal := exists && v.Equal(read(want))
	return equal == (m[2] == "="), nil
}

func (e *expression) update(it sluice.Item) (sluice.Item, error) {
	attrs := sdkitem.Map(it)
	at := clause.FindAllStringIndex(e.op.Update, -1)
	if len(at) == 0 || strings.TrimSpace(e.op.Update[:at[0][0]]) != "" {
		return it, fmt.Errorf("tabletest does not know the update %q", e.op.Update)
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
				name, err := e.name(part)
				if err != nil {
					return it, err
				}
				delete(attrs, name)
				continue
			}
			form := assign
			if verb == "ADD" {
				form = add
			}
			m := form.FindStringSubmatch(part)
			if m == nil {
				return it, fmt.Errorf("tabletest does not know the update %q", part)
			}
			name, err := e.name(m[1])
			if err != nil {
				return it, err
			}
			value, err := e.value(m[2])
			if err != nil {
				return it, err
			}
			if verb == "ADD" {
				if value, err = sum(attrs[name], value); err != nil {
					return it, fmt.Errorf("ADD to %s: %w", name, err)
				}
			}
			attrs[name] = value
		}
	}
	return sdkitem.FromMap(attrs)
}

// sum adds by to there; nil counts as 0.
func sum(there, by types.AttributeValue) (types.AttributeValue, error) {
	n, ok := read(by).Int64()
	if !ok {
		return nil, fmt.Errorf("tabletest adds whole numbers, not %s", read(by).Raw())
	}
	if there != nil {
		old, ok := read(there).Int64()
		if !ok {
			return nil, fmt.Errorf("what is there is no whole number: %s", read(there).Raw())
		}
		n += old
	}
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}, nil
}

func (e *expression) name(s string) (string, error) {
	if !strings.HasPrefix(s, "#") {
		return s, nil
	}
	e.used[s] = true
	if e.op.Names[s] == "" {
		return "", fmt.Errorf("no name for %s", s)
	}
	return e.op.Names[s], nil
}

func (e *expression) value(s string) (types.AttributeValue, error) {
	e.used[s] = true
	v, ok := e.op.Values[s]
	if !ok {
		return nil, fmt.Errorf("no value for %s", s)
	}
	switch v := v.(type) {
	case string, bool, int, int64, int32, []byte, nil:
		return attributevalue.Marshal(v)
	case json.Number:
		return &types.AttributeValueMemberN{Value: v.String()}, nil
	case item.Value:
		return sdkitem.Value(v), nil
	case sluice.Item:
		return &types.AttributeValueMemberM{Value: sdkitem.Map(v)}, nil
	}
	return nil, fmt.Errorf("value %s is a %T", s, v)
}

// unused refuses what no expression uses, as the service does.
func (e *expression) unused() error {
	for s := range e.op.Names {
		if !e.used[s] {
			return fmt.Errorf("name %s is not used", s)
		}
	}
	for s := range e.op.Values {
		if !e.used[s] {
			return fmt.Errorf("value %s is not used", s)
		}
	}
	return nil
}

func read(v types.AttributeValue) item.Value {
	it, err := sdkitem.FromMap(map[string]types.AttributeValue{"v": v})
	if err != nil {
		panic(err)
	}
	got, _ := it.Lookup("v")
	return got
}
