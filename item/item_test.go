package item_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/item/sdkitem"
)

func parse(t testing.TB, in string) item.Item {
	t.Helper()
	it, err := item.Parse([]byte(in))
	if err != nil {
		t.Fatalf("%s: %v", in, err)
	}
	return it
}

func TestZeroItem(t *testing.T) {
	var it item.Item
	if _, ok := it.Lookup("a"); ok || it.Exists() || it.Raw() != nil || it.Len() != 0 {
		t.Error("the zero item holds something")
	}
	for range it.All() {
		t.Error("the zero item has an attribute")
	}
	if got := string(it.AppendJSON([]byte("x"))); got != "xnull" {
		t.Errorf("AppendJSON is %s", got)
	}
	if !it.Equal(item.Item{}) || it.Equal(parse(t, `{}`)) || parse(t, `{}`).Equal(it) {
		t.Error("absent and empty are mixed up")
	}
	if c := it.Clone(); c.Exists() {
		t.Error("a clone of nothing exists")
	}
}

func TestLookup(t *testing.T) {
	const attrs = `{"a":{"S":"x"}, "long attribute name":{"N":"1"}, "m":{"M":{"b":{"N":"2"},"l":{"L":[{"S":"y"},{"M":{"c":{"N":"3"}}}]},"x.y":{"N":"4"}}},
		"a.b":{"S":"literal"},"m.b":{"S":"before the path"},"d.e":{"M":{"f.g":{"N":"5"}}},"q\u0022\\":{"S":"escaped"},"set":{"SS":["one"]},"":{"M":{"":{"N":"6"}}}}`
	for _, it := range []item.Item{parse(t, attrs), nestedCopy(t, attrs)} {
		for path, want := range map[string]string{
			"a": `"x"`, "long attribute name": "1", "m.l.0": `"y"`, "m.l.1.c": "3", "m.x.y": "4",
			"a.b": `"literal"`, "m.b": `"before the path"`, "d.e.f.g": "5", `q"\`: `"escaped"`, "set": `["one"]`, ".": "6",
			"": `{"":6}`, "m.l": `["y",{"c":3}]`,
			"b": "", "A": "", "a.": "", "m.c": "", "m.l.2": "", "m.l.-1": "", "m.l.+1": "", "m.l.00": "", "m.l.1.d": "", "m.l.0.x": "",
			"set.0": "", "m.l.99999999999999999999": "", "long attribute nam": "", "long attribute names": "", `q\u0022\\`: "", "..": "",
		} {
			v, ok := it.Lookup(path)
			if ok != (want != "") {
				t.Errorf("Lookup(%q) is %v", path, ok)
			} else if ok && string(v.AppendJSON(nil)) != want {
				t.Errorf("Lookup(%q) is %s, wanted %s", path, v.AppendJSON(nil), want)
			}
		}
	}
}

// nestedCopy returns the map as one inside another, which has no index.
func nestedCopy(t testing.TB, attrs string) item.Item {
	v, ok := parse(t, `{"in":{"M":`+attrs+`}}`).Lookup("in")
	if !ok {
		t.Fatal("no map")
	}
	return v.Map()
}

func TestLookupFindsAll(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		attrs := recordtest.Random(rng, 2).Variant(rng)
		for _, it := range []item.Item{parse(t, attrs), nestedCopy(t, attrs), parse(t, attrs).Clone()} {
			n := 0
			for name, v := range it.All() {
				if got, ok := it.Lookup(name); !ok || !bytes.Equal(got.Raw(), v.Raw()) || got.Kind() != v.Kind() {
					t.Fatalf("%s: Lookup(%q) is %s %v, wanted %s", attrs, name, got.Raw(), ok, v.Raw())
				}
				n++
			}
			if n != it.Len() {
				t.Fatalf("%s: %d attributes, Len %d", attrs, n, it.Len())
			}
		}
	}
}

func TestAllStops(t *testing.T) {
	var names []string
	for name := range parse(t, `{"b":{"N":"1"},"a":{"N":"2"},"c":{"N":"3"}}`).All() {
		if names = append(names, name); name == "a" {
			break
		}
	}
	if want := []string{"b", "a"}; !slices.Equal(names, want) {
		t.Errorf("names %q, wanted %q", names, want)
	}
}

func TestValues(t *testing.T) {
	it := parse(t, `{"s":{"S":"a\"b"},"n":{"N":"-12"},"f":{"N":"1.5"},"big":{"N":"9223372036854775808"},"b":{"B":"AP9//w=="},"e":{"B":""},
		"t":{"BOOL":true},"u":{"BOOL":false},"z":{"NULL":true},"m":{"M":{"x":{"N":"1"}}},"l":{"L":[{"S":"x"},{"N":"2"}]},
		"ss":{"SS":["x","y\u0079"]},"ns":{"NS":["1"]},"bs":{"BS":["AAE="]}}`)
	get := func(name string) item.Value {
		v, ok := it.Lookup(name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		return v
	}
	for name, want := range map[string]struct {
		kind item.Kind
		str  string
		len  int
	}{
		"s": {item.S, `a"b`, 3}, "n": {item.N, "-12", 3}, "b": {item.B, "", 4}, "e": {item.B, "", 0}, "t": {item.BOOL, "", 0}, "z": {item.NULL, "", 0},
		"m": {item.M, "", 1}, "l": {item.L, "", 2}, "ss": {item.SS, "", 2}, "ns": {item.NS, "", 1}, "bs": {item.BS, "", 1},
	} {
		v := get(name)
		if v.Kind() != want.kind || v.Str() != want.str || string(v.Text()) != want.str || v.Len() != want.len {
			t.Errorf("%s: kind %v, text %q, length %d; wanted %v", name, v.Kind(), v.Str(), v.Len(), want)
		}
	}
	if v := get("s"); !v.Is(`a"b`) || v.Is(`a\"b`) || get("n").Is("-12") {
		t.Error("Is is wrong")
	}
	if n, ok := get("n").Int64(); n != -12 || !ok {
		t.Errorf("Int64 is %d %v", n, ok)
	}
	for _, name := range []string{"f", "big", "s"} {
		if n, ok := get(name).Int64(); ok {
			t.Errorf("%s as Int64 is %d", name, n)
		}
	}
	if f, ok := get("f").Float64(); f != 1.5 || !ok {
		t.Errorf("Float64 is %v %v", f, ok)
	}
	if b := get("b").Bytes(); !bytes.Equal(b, []byte{0, 0xff, 0x7f, 0xff}) {
		t.Errorf("Bytes are %x", b)
	}
	if b := get("e").Bytes(); b == nil || len(b) != 0 || get("s").Bytes() != nil {
		t.Error("empty and absent bytes are mixed up")
	}
	if !get("t").Bool() || get("u").Bool() || get("z").Bool() || get("s").Bool() {
		t.Error("Bool is wrong")
	}
	if m := get("m").Map(); m.Len() != 1 || get("l").Map().Exists() {
		t.Error("Map is wrong")
	}
	var list []string
	for v := range get("l").List() {
		list = append(list, v.Kind().String()+v.Str())
	}
	for v := range get("ss").Set() {
		list = append(list, v.Kind().String()+v.Str())
	}
	for v := range get("bs").Set() {
		list = append(list, v.Kind().String(), string(v.Bytes()))
	}
	for range get("ss").List() {
		t.Error("a set is no list")
	}
	for range get("l").Set() {
		t.Error("a list is no set")
	}
	if want := []string{"Sx", "N2", "Sx", "Syy", "B", "\x00\x01"}; !slices.Equal(list, want) {
		t.Errorf("elements %q, wanted %q", list, want)
	}
	var zero item.Value
	if zero.Kind() != item.Invalid || zero.Str() != "" || zero.Len() != 0 || zero.Bool() || zero.Bytes() != nil || string(zero.AppendJSON(nil)) != "null" {
		t.Error("the zero value is something")
	}
}

func TestStringsAreCopies(t *testing.T) {
	data := []byte(`{"name":{"S":"text"},"b":{"B":"AAEC"}}`)
	it, err := item.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	clone := it.Clone()
	var names []string
	for name := range it.All() {
		names = append(names, name)
	}
	v, _ := it.Lookup("name")
	b, _ := it.Lookup("b")
	text, bin := v.Str(), b.Bytes()
	clear(data)
	if text != "text" || names[0] != "name" || !bytes.Equal(bin, []byte{0, 1, 2}) {
		t.Errorf("the item's memory shows: %q %q %v", text, names, bin)
	}
	if v, ok := clone.Lookup("name"); !ok || v.Str() != "text" {
		t.Error("the clone shares the item's memory")
	}
}

func TestEqual(t *testing.T) {
	for _, tt := range []struct {
		a, b  string
		equal bool
	}{
		{`{}`, ` { } `, true},
		{`{"a":{"S":"x"},"b":{"N":"1"}}`, `{"b":{"N":"1.0"},"a":{"S":"\u0078"}}`, true},
		{`{"n":{"N":"100"}}`, `{"n":{"N":"1E2"}}`, true},
		{`{"n":{"N":"0.001"}}`, `{"n":{"N":"+1e-3"}}`, true},
		{`{"n":{"N":"0"}}`, `{"n":{"N":"-0.00E5"}}`, true},
		{`{"n":{"N":"1"}}`, `{"n":{"N":"-1"}}`, false},
		{`{"n":{"N":"10"}}`, `{"n":{"N":"1"}}`, false},
		{`{"n":{"N":"12345678901234567890"}}`, `{"n":{"N":"12345678901234567891"}}`, false},
		{`{"n":{"N":"1"}}`, `{"n":{"S":"1"}}`, false},
		{`{"s":{"SS":["a","b"]}}`, `{"s":{"SS":["b","a"]}}`, true},
		{`{"s":{"SS":["a","b"]}}`, `{"s":{"SS":["a"]}}`, false},
		{`{"s":{"NS":["1","20"]}}`, `{"s":{"NS":["2E1","1.0"]}}`, true},
		{`{"l":{"L":[{"S":"a"},{"S":"b"}]}}`, `{"l":{"L":[{"S":"b"},{"S":"a"}]}}`, false},
		{`{"l":{"L":[{"S":"a"}]}}`, `{"l":{"L":[{"S":"a"},{"S":"b"}]}}`, false},
		{`{"l":{"L":[{"S":"a"},{"S":"b"}]}}`, `{"l":{"L":[{"S":"a"}]}}`, false},
		{`{"l":{"SS":["a"]}}`, `{"l":{"L":[{"S":"a"}]}}`, false},
		{`{"m":{"M":{"a":{"N":"1"},"b":{"N":"2"}}}}`, `{"m":{"M":{"b":{"N":"2"},"a":{"N":"1"}}}}`, true},
		{`{"a":{"N":"1"}}`, `{"b":{"N":"1"}}`, false},
		{`{"a":{"N":"1"}}`, `{"a":{"N":"1"},"b":{"N":"1"}}`, false},
		{`{"a":{"BOOL":true}}`, `{"a":{"BOOL":false}}`, false},
		{`{"a":{"B":"AA=="}}`, `{"a":{"B":"AAA="}}`, false},
		{`{"a":{"B":"AP\/\/"}}`, `{"a":{"B":"AP//"}}`, true},
	} {
		a, b := parse(t, tt.a), parse(t, tt.b)
		if a.Equal(b) != tt.equal || b.Equal(a) != tt.equal {
			t.Errorf("%s equals %s: %v", tt.a, tt.b, !tt.equal)
		}
		if (a.Hash() == b.Hash()) != tt.equal {
			t.Errorf("%s and %s: hashes %x and %x", tt.a, tt.b, a.Hash(), b.Hash())
		}
	}
}

func TestEqualVariants(t *testing.T) {
	var last item.Item
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		tree := recordtest.Random(rng, 3)
		a, b := parse(t, tree.JSON()), parse(t, tree.Variant(rng))
		if !a.Equal(b) || !b.Equal(a) || a.Hash() != b.Hash() {
			t.Fatalf("not equal:\n%s\n%s", a.Raw(), b.Raw())
		}
		if !reflect.DeepEqual(sdkitem.Map(last), sdkitem.Map(a)) && (a.Equal(last) || a.Hash() == last.Hash()) {
			t.Fatalf("equal:\n%s\n%s", a.Raw(), last.Raw())
		}
		last = a
	}
}

func TestAppendJSONSorted(t *testing.T) {
	it := parse(t, `{"b":{"N":"1"},"a":{"M":{"z":{"S":"<"},"\u0061":{"L":[{"M":{"2":{"N":"2"},"10":{"N":"10"}}}]}}},"B":{"NULL":true},"é":{"N":"3"},"\u0001":{"N":"4"}}`)
	const want = `{"\u0001":4,"B":null,"a":{"\u0061":[{"10":10,"2":2}],"z":"<"},"b":1,"é":3}`
	if got := string(it.AppendJSON([]byte("x"), item.JSON{SortedKeys: true})); got != "x"+want {
		t.Errorf("%s\nwanted %s", got, want)
	}
}

// plain is what an attribute value means as a value of encoding/json.
func plain(av types.AttributeValue) any {
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return exact(v.Value)
	case *types.AttributeValueMemberB:
		return v.Value
	case *types.AttributeValueMemberBOOL:
		return v.Value
	case *types.AttributeValueMemberM:
		m := map[string]any{}
		for k, e := range v.Value {
			m[k] = plain(e)
		}
		return m
	case *types.AttributeValueMemberL:
		l := []any{}
		for _, e := range v.Value {
			l = append(l, plain(e))
		}
		return l
	case *types.AttributeValueMemberSS:
		l := []any{}
		for _, e := range v.Value {
			l = append(l, e)
		}
		return l
	case *types.AttributeValueMemberNS:
		l := []any{}
		for _, e := range v.Value {
			l = append(l, exact(e))
		}
		return l
	case *types.AttributeValueMemberBS:
		l := []any{}
		for _, e := range v.Value {
			l = append(l, e)
		}
		return l
	}
	return nil
}

// exact names a number; package big does not take every exponent of zero.
func exact(n string) string {
	if digits, _, _ := strings.Cut(strings.ToLower(n), "e"); !strings.ContainsAny(digits, "123456789") {
		return "0"
	}
	return rat(strings.TrimPrefix(n, "+")).RatString()
}

// toNumbers brings what encoding/json read, with UseNumber, into plain's form;
// like says where text is binary.
func toNumbers(t testing.TB, x, like any) any {
	switch x := x.(type) {
	case json.Number:
		return rat(x.String()).RatString()
	case string:
		if _, binary := like.([]byte); binary {
			var b []byte
			if err := json.Unmarshal([]byte(`"`+x+`"`), &b); err != nil {
				t.Fatal(err)
			}
			return b
		}
	case []any:
		l, _ := like.([]any)
		for i := range x {
			var e any
			if i < len(l) {
				e = l[i]
			}
			x[i] = toNumbers(t, x[i], e)
		}
	case map[string]any:
		m, _ := like.(map[string]any)
		for k := range x {
			x[k] = toNumbers(t, x[k], m[k])
		}
	}
	return x
}

func checkJSON(t testing.TB, it item.Item) {
	t.Helper()
	want := plain(&types.AttributeValueMemberM{Value: sdkitem.Map(it)})
	for _, opts := range [][]item.JSON{nil, {{SortedKeys: true}}} {
		out := it.AppendJSON(nil, opts...)
		if len(out) > len(it.Raw()) {
			t.Fatalf("%q grew to %q", it.Raw(), out)
		}
		dec := json.NewDecoder(bytes.NewReader(out))
		dec.UseNumber()
		var got any
		if err := dec.Decode(&got); err != nil || !json.Valid(out) {
			t.Fatalf("%q: %q: %v", it.Raw(), out, err)
		}
		if got = toNumbers(t, got, want); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %q\nis     %v\nwanted %v", it.Raw(), out, got, want)
		}
	}
}

func TestAppendJSONZeros(t *testing.T) {
	it := parse(t, `{"l":{"L":[{"N":"0"},{"N":"-0"},{"N":"0.00"},{"N":"+00"},{"N":"0E99999999999999999999"},{"N":"-.0e-7"},{"N":"0.10E5"}]}}`)
	if got, want := string(it.AppendJSON(nil)), `{"l":[0,-0,0.00,0,0,0,0.10E5]}`; got != want {
		t.Errorf("%s, wanted %s", got, want)
	}
}

func TestAppendJSONAllocatesNothing(t *testing.T) {
	it := parse(t, `{"s":{"S":"text"},"n":{"N":"1"},"m":{"M":{"ss":{"SS":["a","b"]},"l":{"L":[{"BOOL":true},{"NULL":true}]}}}}`)
	buf := it.AppendJSON(nil)
	if n := testing.AllocsPerRun(100, func() { buf = it.AppendJSON(buf[:0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAppendJSONMeansTheSame(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 4))
		checkJSON(t, parse(t, recordtest.Random(rng, 3).Variant(rng)))
	}
}

func FuzzAppendJSON(f *testing.F) {
	for _, tt := range valid {
		f.Add([]byte(tt.in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if it, err := item.Parse(data); err == nil && len(data) < 1<<16 && !bytes.Contains(data, []byte(`E99`)) {
			checkJSON(t, it)
		}
	})
}
