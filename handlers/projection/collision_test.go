package projection

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// The field that wins among several of one name. The others are counted.
func TestCollisions(t *testing.T) {
	it, err := item.Parse([]byte(`{"pk":{"S":"a"},"rev":{"N":"1"},"x":{"S":"own"},"y":{"S":"other"},"m":{"M":{"x":{"S":"in m"},"z":{"S":"m.z"}}},"n":{"M":{"\u007a":{"S":"n.z"},"y":{"S":"n.y"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		o       Options
		want    string
		dropped []string
	}{
		{"a field of the projection's own", Options{First: []Field{Constant("x", 1)}, Last: []Field{Text("y", "{pk}")}, Include: []string{"x", "y"}}, `{"x":1,"y":"a"}`, []string{"x", "y"}},
		{"and although it is not in the document", Options{Last: []Field{Copy("x", "none"), Text("y", "{none}")}, Include: []string{"x", "y"}}, `{}`, []string{"x", "y"}},
		{"an attribute that is called so", Options{Rename: []Rename{{"y", "x"}}, Include: []string{"x", "y"}}, `{"x":"own"}`, []string{"x"}},
		{"unless it is called otherwise itself", Options{Rename: []Rename{{"y", "x"}, {"x", "y"}}, Include: []string{"x", "y"}}, `{"x":"other","y":"own"}`, nil},
		{"or is excluded", Options{Rename: []Rename{{"y", "x"}}, Exclude: []string{"x", "pk", "rev", "m", "n"}}, `{"x":"other"}`, nil},
		{"the first Rename", Options{Rename: []Rename{{"y", "q"}, {"x", "q"}}, Include: []string{"x", "y"}}, `{"q":"other"}`, []string{"q"}},
		{"that finds its attribute", Options{Rename: []Rename{{"none", "q"}, {"x", "q"}}, Include: []string{"x", "none"}}, `{"q":"own"}`, nil},
		{"an attribute before a flattened one", Options{Flatten: []Flatten{{Path: "m"}}, Include: []string{"m", "x"}}, `{"x":"own","z":"m.z"}`, []string{"x"}},
		{"a renamed attribute before a flattened one", Options{Flatten: []Flatten{{Path: "m"}}, Rename: []Rename{{"y", "z"}}, Include: []string{"m", "y"}}, `{"z":"other","x":"in m"}`, []string{"z"}},
		{"the first Flatten", Options{Flatten: []Flatten{{Path: "n"}, {Path: "m"}}, Include: []string{"m", "n"}}, `{"\u007a":"n.z","y":"n.y","x":"in m"}`, []string{"z"}},
		{"with prefixes", Options{Flatten: []Flatten{{"n", "n_"}, {"m", "m_"}}, Include: []string{"m", "n"}, First: []Field{Constant("n_z", 0)}}, `{"n_z":0,"n_y":"n.y","m_x":"in m","m_z":"m.z"}`, []string{"n_z"}},
		{"in a map", Options{Rename: []Rename{{"m.z", "x"}}, Include: []string{"m"}}, `{"m":{"x":"in m"}}`, []string{"x"}},
		{"what is no map stays", Options{Flatten: []Flatten{{Path: "x"}}, Include: []string{"x"}}, `{"x":"own"}`, nil},
	} {
		tt.o.Index, tt.o.ID, tt.o.Version = "i", "{pk}", ByAttribute("rev")
		var dropped []string
		tt.o.Dropped = func(_, field string) { dropped = append(dropped, field) }
		index := streamtest.NewIndex()
		rec := sluice.Record{EventName: sluice.Insert, Table: "t", New: it}
		if err := must(t, index.Write, tt.o).Handle(t.Context(), &rec); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		slices.Sort(dropped)
		if got := string(index.Docs("i")[0].Source); got != tt.want || !slices.Equal(dropped, tt.dropped) {
			t.Errorf("%s: %s without %q\nwant %s without %q", tt.name, got, dropped, tt.want, tt.dropped)
		}
	}
}

func TestPaths(t *testing.T) {
	const it = `{"pk":{"S":"a"},"a.b":{"N":"1"},"a":{"M":{"b":{"N":"2"},"c":{"N":"3"}}},"l":{"L":[{"M":{"b":{"N":"4"},"c":{"N":"5"}}},{"N":"6"},{"L":[{"M":{"b":{"N":"7"}}}]}]},"b":{"B":"AAH/"},"z":{"NULL":true}}`
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"all", Options{}, `{"pk":"a","a.b":1,"a":{"b":2,"c":3},"l":[{"b":4,"c":5},6,[{"b":7}]],"b":"AAH/","z":null}`},
		{"excluded, in maps and in names", Options{Exclude: []string{"a.b", "l.c"}}, `{"pk":"a","a":{"c":3},"l":[{"b":4},6,[{"b":7}]],"b":"AAH/","z":null}`},
		{"included", Options{Include: []string{"a.b", "l.c", "z", "b.x"}}, `{"a.b":1,"a":{"b":2},"l":[{"c":5},[{}]],"z":null}`},
		{"excluded from what is included", Options{Include: []string{"a", "l"}, Exclude: []string{"a.c", "l"}}, `{"a":{"b":2}}`},
		{"excluded from what is not", Options{Include: []string{"z"}, Exclude: []string{"a.c"}}, `{"z":null}`},
		{"renamed in maps and lists", Options{Include: []string{"a", "l"}, Rename: []Rename{{"a.c", "é\"\n"}, {"l.b", "x"}}}, `{"a":{"b":2,"é\"\n":3},"l":[{"c":5,"x":4},6,[{"x":7}]]}`},
		{"flattened from within", Options{Include: []string{"a", "z"}, Flatten: []Flatten{{"a", "a_"}}, Exclude: []string{"a.b"}}, `{"z":null,"a_c":3}`},
	} {
		o := tt.o
		o.Index, o.ID, o.Version = "i", "{pk}", Unversioned()
		if got := bodyOf(t, o, it); got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// If a path fits two maps, the first is flattened, and the second stays.
func TestFlattenOfAnAmbiguousPath(t *testing.T) {
	o := Options{Index: "i", ID: "{pk}", Version: Unversioned(), Include: []string{"a", "a.b"}, Flatten: []Flatten{{Path: "a.b"}}}
	it, err := item.Parse([]byte(`{"pk":{"S":"x"},"a.b":{"M":{"n":{"N":"1"}}},"a":{"M":{"b":{"M":{"m":{"N":"2"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	ops, err := must(t, nil, o).Project(&sluice.Record{EventName: sluice.Insert, New: it, Sequence: "300000000000000000001"})
	if want := `{"a":{"b":{"m":2}},"n":1}`; err != nil || string(ops[0].Body) != want {
		t.Errorf("%+v, %v, want %s", ops, err, want)
	}
}

// Every character of a text is in the document, and in the text of a template.
func TestTextsSurvive(t *testing.T) {
	var all strings.Builder
	for r := range rune(0x250) {
		all.WriteRune(r)
	}
	all.WriteString("\u2028\u2029\ufffe\uffff😀'\"\\</script>&")
	texts := []string{all.String(), "\x00", "it's", `C:\dir\new`, "a\r\n\tb", `{"json":"in text"}`, "%00"}
	o := Options{Index: "i", ID: "id-{pk}", Version: Unversioned(), Last: []Field{
		Text("text", "<{s}>"),
		Computed("computed", func(dst []byte, it sluice.Item) ([]byte, error) {
			v, _ := it.Lookup("s")
			return item.AppendString(dst, v.Text()), nil
		}),
	}}
	for _, text := range texts {
		got := bodyOf(t, o, item.Of(item.String("pk", "a"), item.String("s", text), item.Map("m", item.Of(item.String(text, text)))))
		want := map[string]any{"pk": "a", "s": text, "m": map[string]any{text: text}, "text": "<" + text + ">", "computed": text}
		if diff := cmp.Diff(any(want), tokens(t, []byte(got))); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
		if strings.ContainsAny(got, "\n\r") {
			t.Errorf("%q is on several lines: %q", text, got)
		}
	}
}

func TestNumbersAreExact(t *testing.T) {
	const n = "12345678901234567890123456789012345678"
	got := bodyOf(t, small(), `{"pk":{"S":"a"},"rev":{"N":"1"},"n":{"N":"`+n+`"},"f":{"N":"0.1"},"l":{"NS":["`+n+`","-1.50"]}}`)
	if want := `{"pk":"a","rev":1,"n":` + n + `,"f":0.1,"l":[-1.5,` + n + `]}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestComputedFields(t *testing.T) {
	rec := streamtest.Insert("t", map[string]any{"pk": "a", "rev": 1})
	for _, tt := range []struct{ appends, want string }{
		{`{"a":[1]}`, `{"pk":"a","rev":1,"c":{"a":[1]}}`},
		{``, `{"pk":"a","rev":1}`},
		{`1,"rev":2`, ""},
		{`{"a":`, ""},
		{` `, ""},
		{`1 `, ""},
		{"\"\xff\"", ""},
	} {
		o := small()
		o.Last = []Field{Computed("c", func(dst []byte, _ sluice.Item) ([]byte, error) { return append(dst, tt.appends...), nil })}
		ops, err := must(t, nil, o).Project(&rec)
		if tt.want == "" {
			if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), `field "c": the function appended something other than one JSON value`) {
				t.Errorf("%s: %v", tt.appends, err)
			}
		} else if err != nil || string(ops[0].Body) != tt.want {
			t.Errorf("%s: %+v, %v", tt.appends, ops, err)
		}
	}
	o := small()
	o.Last = []Field{Computed("c", func([]byte, sluice.Item) ([]byte, error) { return nil, nil })}
	if _, err := must(t, nil, o).Project(&rec); !sluice.IsPermanent(err) {
		t.Error(err)
	}
	broken := errors.New("no such thing")
	o.Last = []Field{Computed("c", func(dst []byte, _ sluice.Item) ([]byte, error) { return dst, broken })}
	if _, err := must(t, nil, o).Project(&rec); !sluice.IsPermanent(err) || !errors.Is(err, broken) {
		t.Error(err)
	}
	o.Last = []Field{Text("c", "{m}")}
	rec = streamtest.Insert("t", map[string]any{"pk": "a", "rev": 1, "m": map[string]any{}})
	if _, err := must(t, nil, o).Project(&rec); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), `field "c": template "{m}": attribute "m" is of type M`) {
		t.Error(err)
	}
}

// A tombstone of a stream without images is made of the keys.
func TestTombstones(t *testing.T) {
	o := Options{Index: "i", ID: "{pk}", Version: Unversioned(), Tombstone: []Field{Constant("deleted", true), Copy("pk", "pk"), Copy("n", "n")}}
	for view, want := range map[item.View]string{
		item.BothImages: `{"deleted":true,"pk":"a","n":1}`,
		item.NewImage:   `{"deleted":true,"pk":"a"}`,
	} {
		rec := streamtest.Remove("t", map[string]any{"pk": "a", "n": 1}, streamtest.WithView(view))
		ops, err := must(t, nil, o).Project(&rec)
		if err != nil || len(ops) != 1 || ops[0].Action != document.Put || string(ops[0].Body) != want {
			t.Errorf("%v: %+v, %v", view, ops, err)
		}
	}
}

// The caller owns the result of Project. It is the same each time, and equals the
// writes of Handle.
func TestProjectIsPure(t *testing.T) {
	o := small()
	o.Flatten, o.Rename, o.Exclude = []Flatten{{"m", "m_"}}, []Rename{{"n", "number"}}, []string{"m.b"}
	old := map[string]any{"pk": "a", "rev": 1, "n": 1, "m": map[string]any{"a": "x", "b": "y"}}
	rec := streamtest.Modify("t", old, map[string]any{"pk": "a", "rev": 2, "n": 1, "m": map[string]any{"a": "x", "b": "y"}})
	var sink streamtest.Sink[document.Op]
	p := must(t, sink.Send, o)
	first, err := p.Project(&rec)
	if err != nil {
		t.Fatal(err)
	}
	kept, _ := json.Marshal(first)
	for i := range 50 {
		other := streamtest.Insert("t", map[string]any{"pk": strings.Repeat("z", i+1), "rev": i, "m": map[string]any{"q": i}})
		if _, err := p.Project(&other); err != nil {
			t.Fatal(err)
		}
		if err := p.Handle(t.Context(), &other); err != nil {
			t.Fatal(err)
		}
		if now, _ := json.Marshal(first); string(now) != string(kept) {
			t.Fatalf("%s has become %s", kept, now)
		}
		again, err := p.Project(&rec)
		if diff := cmp.Diff(first, again); diff != "" || err != nil {
			t.Fatal(err, diff)
		}
	}
	if err := p.Handle(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	written := sink.Values()
	if diff := cmp.Diff(first, written[len(written)-1:]); diff != "" {
		t.Error(diff)
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { *o = Options{} }, "Index: \"\" is empty\nID: template \"\" has no attribute: all items would be one document\nVersion: it is missing; want ByAttribute"},
		{func(o *Options) { o.Index = "A" }, `Index: "A" has 'A' in it`},
		{func(o *Options) { o.Index = "{a" }, `Index: template "{a", byte 0`},
		{func(o *Options) { o.ID = "{a}{b}" }, `ID: template`},
		{func(o *Options) { o.Routing = "}" }, `Routing: template "}", byte 0`},
		{func(o *Options) { o.Version = ByAttribute("") }, `Version: ByAttribute names no attribute`},
		{func(o *Options) { o.Version = ByFunc(nil) }, `Version: ByFunc has no function`},
		{func(o *Options) { o.Include = []string{"a", "b..c"} }, `Include[1]: "b..c" has a dot that separates nothing`},
		{func(o *Options) { o.Exclude = []string{""} }, `Exclude[0]: no attribute is named`},
		{func(o *Options) { o.Exclude = []string{strings.Repeat("a.", 11) + "a"} }, `more than 10 dots`},
		{func(o *Options) { o.First = []Field{{}} }, `First and Last: the zero Field`},
		{func(o *Options) { o.First, o.Last = []Field{Constant("a", 1)}, []Field{Constant("a", 2)} }, `two fields are called "a"`},
		{func(o *Options) { o.First = []Field{Constant("a", func() {})} }, `field "a": json: unsupported type`},
		{func(o *Options) { o.First = []Field{Text("a", "{")} }, `field "a": template "{", byte 0`},
		{func(o *Options) { o.First = []Field{Copy("a", ".")} }, `field "a": "." has a dot`},
		{func(o *Options) { o.First = []Field{Computed("a", nil)} }, `field "a": the function is missing`},
		{func(o *Options) { o.Tombstone = []Field{Constant("", 1)} }, `Tombstone: a field has no name`},
		{func(o *Options) { o.Rename = []Rename{{"", "a"}} }, `Rename[0].From: no attribute`},
		{func(o *Options) { o.Rename = []Rename{{"a", ""}} }, `Rename[0].To: it is missing`},
		{func(o *Options) { o.Rename = []Rename{{"a", "b"}, {"a", "c"}} }, `Rename[1].From: "a" is renamed twice`},
		{func(o *Options) { o.Rename, o.Exclude = []Rename{{"a", "b"}}, []string{"a"} }, `Rename[0].From: "a" is excluded`},
		{func(o *Options) { o.Rename, o.First = []Rename{{"a", "b"}}, []Field{Constant("b", 1)} }, `Rename: a field of First or Last, or the Mark, is called "b"`},
		{func(o *Options) { o.Flatten = []Flatten{{Path: "a"}, {"a", "x"}} }, `Flatten[1].Path: "a" is flattened twice`},
		{func(o *Options) { o.Flatten, o.Rename = []Flatten{{Path: "a"}}, []Rename{{"a", "b"}} }, `Flatten[0].Path: "a" is renamed, too`},
		{func(o *Options) { o.Flatten, o.Include = []Flatten{{Path: "a"}}, []string{"b"} }, `Flatten[0].Path: "a" is excluded, or not included`},
	} {
		o := small()
		tt.change(&o)
		if _, err := New(nil, o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v\nwant %s", err, tt.want)
		}
	}
}
