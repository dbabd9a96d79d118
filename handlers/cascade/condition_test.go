package cascade

import (
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// holds judges the conditions that cascades make, as DynamoDB does: AND binds
// closer than OR.
func holds(d dynamo.GuardedDelete, it sluice.Item) bool {
	return d.Condition == "" || anyOf(d, d.Condition, it)
}

func anyOf(d dynamo.GuardedDelete, condition string, it sluice.Item) bool {
	return slices.ContainsFunc(split(condition, " OR "), func(all string) bool {
		return !slices.ContainsFunc(split(all, " AND "), func(one string) bool { return !holdsOne(d, one, it) })
	})
}

// split splits at separators outside of parentheses.
func split(s, by string) (parts []string) {
	depth, from := 0, 0
	for i := range len(s) {
		switch {
		case s[i] == '(':
			depth++
		case s[i] == ')':
			depth--
		case depth == 0 && strings.HasPrefix(s[i:], by):
			parts = append(parts, s[from:i])
			from = i + len(by)
		}
	}
	return append(parts, s[from:])
}

func holdsOne(d dynamo.GuardedDelete, term string, it sluice.Item) bool {
	if inner, ok := strings.CutPrefix(term, "("); ok {
		return anyOf(d, strings.TrimSuffix(inner, ")"), it)
	}
	at := func(name string) (v, want item.Value, is bool) {
		v, is = it.Lookup(d.Names["#"+name])
		want, _ = d.Values[":"+name].(item.Value)
		return v, want, is
	}
	switch term {
	case "#p = :p":
		v, want, is := at("p")
		return is && v.Equal(want)
	case "begins_with(#s, :s)":
		v, _, is := at("s")
		return is && strings.HasPrefix(v.Str(), d.Values[":s"].(string))
	case "attribute_not_exists(#n)":
		_, _, is := at("n")
		return !is
	case "#n < :n", "#n <= :n":
		v, want, is := at("n")
		return is && v.Kind() == want.Kind() && (less(v, want) || term == "#n <= :n" && v.Equal(want))
	}
	panic(term)
}

func less(v, want item.Value) bool {
	if v.Kind() == item.S {
		return v.Str() < want.Str()
	}
	f, _ := v.Float64()
	g, _ := want.Float64()
	return f < g
}
