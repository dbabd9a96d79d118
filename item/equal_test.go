package item_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/item"
)

// TestEqualBut compares random pairs of maps, in like and unlike orders, with
// and without white space, with the comparison of what is left of them.
func TestEqualBut(t *testing.T) {
	ignored := func(name []byte) bool { return name[0] == 'x' }
	names := []string{"a", "b", "c", "x1", "x2", "A", "dd"}
	values := []string{`{"S":"v"}`, `{"S":"\u0076"}`, `{"S":"w"}`, `{"N":"1"}`, `{"N":"1.0"}`, `{"M":{"k":{"S":"v"}}}`, `{ "M" : { "k":{"S":"v"} } }`}
	same := make(map[string]string) // values that are equal look the same
	for _, v := range values {
		same[v] = strings.NewReplacer(" ", "", `\u0076`, "v", "1.0", "1").Replace(v)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	text := func(m map[string]string, order []string) string {
		space := func() string { return " "[rng.IntN(8)/7^1:] }
		out, comma := "{", ""
		for _, name := range order {
			if v, ok := m[name]; ok {
				out += comma + space() + `"` + name + `"` + space() + ":" + space() + v + space()
				comma = ","
			}
		}
		return out + space() + "}"
	}
	left := func(m map[string]string) map[string]string {
		out := make(map[string]string)
		for name, v := range m {
			if !ignored([]byte(name)) {
				out[name] = same[v]
			}
		}
		return out
	}
	equal := 0
	for range 50_000 {
		m := make(map[string]string)
		for _, name := range names {
			if rng.IntN(3) > 0 {
				m[name] = values[rng.IntN(len(values))]
			}
		}
		o := maps.Clone(m)
		for range rng.IntN(3) {
			name := names[rng.IntN(len(names))]
			if rng.IntN(2) == 0 {
				delete(o, name)
			} else {
				o[name] = values[rng.IntN(len(values))]
			}
		}
		order, other := slices.Clone(names), slices.Clone(names)
		if rng.IntN(2) == 0 {
			rng.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
		}
		a, b := parse(t, text(m, order)), parse(t, text(o, other))
		want := maps.Equal(left(m), left(o))
		if got := a.EqualBut(b, ignored); got != want {
			t.Fatalf("%s and %s: %v, want %v", a.Raw(), b.Raw(), got, want)
		}
		if want {
			equal++
		}
	}
	if equal < 1000 {
		t.Errorf("only %d pairs were equal", equal)
	}
}

func TestEqualButOfAbsent(t *testing.T) {
	all := func([]byte) bool { return true }
	empty := parse(t, `{}`)
	if empty.EqualBut(item.Item{}, all) || !empty.EqualBut(parse(t, `{"a":{"S":"v"}}`), all) || !empty.EqualBut(parse(t, `{ }`), all) {
		t.Error("absent, empty and ignored items are told apart wrongly")
	}
}

// Two large maps whose names stand in unlike places: comparing them must not
// cost the square of their size.
func TestEqualOfLargeMaps(t *testing.T) {
	var parts []string
	for i := range 10_000 {
		parts = append(parts, fmt.Sprintf(`"%05d":{"NULL":true}`, i))
	}
	text := func(parts []string) string { return `{"m":{"M":{` + strings.Join(parts, ",") + `}}}` }
	a := parse(t, text(parts))
	slices.Reverse(parts)
	b := parse(t, text(parts))
	if !a.Equal(b) || a.Hash() != b.Hash() {
		t.Error("the order of names counts")
	}
	parts[5_000] = `"x":{"NULL":true}`
	if c := parse(t, text(parts)); a.Equal(c) || c.Equal(a) {
		t.Error("an attribute of another name is equal")
	}
}

// Maps that hold the same texts in other places are no like maps.
func TestHashTellsStructure(t *testing.T) {
	seen := map[uint64]string{}
	for _, in := range []string{
		`{}`, `{"a":{"S":"b"}}`, `{"ab":{"S":""}}`, `{"":{"S":"ab"}}`, `{"b":{"S":"a"}}`, `{"a":{"B":"b+++"}}`, `{"a":{"S":"b+++"}}`,
		`{"a":{"S":"1"},"b":{"S":"2"}}`, `{"a":{"S":"2"},"b":{"S":"1"}}`, `{"a":{"N":"1"},"b":{"N":"2"}}`, `{"a":{"N":"12"}}`, `{"a":{"N":"120"}}`,
		`{"a":{"M":{}}}`, `{"a":{"L":[]}}`, `{"a":{"SS":[]}}`, `{"a":{"NS":[]}}`, `{"a":{"NULL":true}}`, `{"a":{"BOOL":true}}`, `{"a":{"BOOL":false}}`,
		`{"a":{"M":{"a":{"S":"b"}}}}`, `{"a":{"L":[{"S":"a"},{"S":"b"}]}}`, `{"a":{"L":[{"S":"b"},{"S":"a"}]}}`, `{"a":{"L":[{"L":[{"S":"a"}]},{"S":"b"}]}}`,
		`{"a":{"L":[{"L":[{"S":"a"},{"S":"b"}]}]}}`, `{"a":{"SS":["a","b"]}}`, `{"a":{"SS":["ab"]}}`, `{"a":{"SS":["a"]}}`, `{"a":{"SS":["a","a"]}}`, `{"a":{"SS":["ab",""]}}`,
	} {
		h := parse(t, in).Hash()
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s have one hash", in, other)
		}
		seen[h] = in
	}
}
