package projection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
)

// For any options and any item, the document has every field once, and equals the
// document of a simple, slow oracle.
func TestBodiesAgainstOracle(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	used := 0
	for seed := range uint64(10000) {
		r := rand.New(rand.NewPCG(seed, 1))
		o := randomOptions(r)
		it, err := item.Parse(randomMap(r, 0))
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(nil, o)
		if err != nil {
			continue // such as what is excluded and renamed
		}
		used++
		rec := sluice.Record{EventName: sluice.Insert, New: it, Keys: it}
		ops, err := p.Project(&rec)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got := tokens(t, ops[0].Body)
		want, lost := oracle(o, it)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: %s\nof %s\noptions %+v\n%s", seed, ops[0].Body, it.Raw(), o, diff)
		}
		s := p.scratch.Get().(*scratch)
		s.writer.count = true
		if _, err := p.ops(s, &rec); err != nil {
			t.Fatal(err)
		}
		slices.Sort(lost)
		slices.Sort(s.writer.dropped)
		if !slices.Equal(lost, s.writer.dropped) {
			t.Fatalf("seed %d: dropped %q, want %q\nof %s\noptions %+v", seed, s.writer.dropped, lost, it.Raw(), o)
		}
	}
	if used < 4000 {
		t.Errorf("only %d of the options are valid", used)
	}
}

// tokens decodes a document; a field that it has twice fails the test.
func tokens(t *testing.T, doc []byte) any {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var value func() any
	value = func() any {
		tok, err := d.Token()
		if err != nil {
			t.Fatalf("%v in %s", err, doc)
		}
		switch tok {
		case json.Delim('{'):
			m := map[string]any{}
			for d.More() {
				name := value().(string)
				if _, twice := m[name]; twice {
					t.Fatalf("field %q twice in %s", name, doc)
				}
				m[name] = value()
			}
			d.Token()
			return m
		case json.Delim('['):
			l := []any{}
			for d.More() {
				l = append(l, value())
			}
			d.Token()
			return l
		}
		return tok
	}
	v := value()
	if _, err := d.Token(); err != io.EOF {
		t.Fatalf("more than one value: %s", doc)
	}
	return v
}

var someNames = []string{"a", "b", "c", "d", "a.b", "b.c", `q"`, "é"}

func randomPath(r *rand.Rand) string {
	var parts []string
	for range 1 + r.IntN(3) {
		parts = append(parts, someNames[r.IntN(4)])
	}
	return strings.Join(parts, ".")
}

func randomOptions(r *rand.Rand) Options {
	o := Options{Index: "i", ID: "{id}", Version: Unversioned()}
	for range max(0, r.IntN(5)-2) {
		o.Include = append(o.Include, randomPath(r))
	}
	for range r.IntN(3) {
		o.Exclude = append(o.Exclude, randomPath(r))
	}
	for range r.IntN(3) {
		o.Rename = append(o.Rename, Rename{randomPath(r), someNames[r.IntN(len(someNames))]})
	}
	for range r.IntN(4) {
		o.Flatten = append(o.Flatten, Flatten{randomPath(r), []string{"", "", "a.", `"`}[r.IntN(4)]})
	}
	if r.IntN(2) == 0 {
		o.First = []Field{Constant(someNames[r.IntN(len(someNames))], 7)}
	}
	if r.IntN(2) == 0 {
		o.Last = []Field{Copy(someNames[r.IntN(len(someNames))], randomPath(r))}
	}
	return o
}

func randomMap(r *rand.Rand, depth int) []byte {
	b := []byte{'{'}
	if depth == 0 {
		b = append(b, `"id":{"S":"x"}`...)
	}
	for _, i := range r.Perm(len(someNames))[:r.IntN(len(someNames)-depth)] {
		if len(b) > 1 {
			b = append(b, ',')
		}
		name, _ := json.Marshal(someNames[i])
		if r.IntN(4) == 0 {
			name = fmt.Appendf(nil, `"%s"`, strings.ReplaceAll(strings.Trim(string(name), `"`), "a", `\u0061`))
			if someNames[i] == `q"` {
				name = []byte(`"q\u0022"`)
			}
		}
		b = append(append(append(b, name...), ':'), randomValue(r, depth+1)...)
	}
	return append(b, '}')
}

func randomValue(r *rand.Rand, depth int) []byte {
	n := r.IntN(100)
	switch r.IntN(8) {
	case 0, 1, 2:
		if depth < 4 {
			return fmt.Appendf(nil, `{"M":%s}`, randomMap(r, depth))
		}
	case 3, 4:
		if depth < 4 {
			var l [][]byte
			for range r.IntN(4) {
				l = append(l, randomValue(r, depth+1))
			}
			return fmt.Appendf(nil, `{"L":[%s]}`, bytes.Join(l, []byte(",")))
		}
	case 5:
		return fmt.Appendf(nil, `{"SS":["%d","x"]}`, n)
	case 6:
		return []byte(`{"NULL":true}`)
	}
	return fmt.Appendf(nil, `{"N":"%d"}`, n)
}

// oracle makes a document as the options say it, from the item's values.
func oracle(o Options, it item.Item) (doc map[string]any, lost []string) {
	doc = map[string]any{}
	reserved := map[string]bool{}
	for _, f := range slices.Concat(o.First, o.Last) {
		reserved[f.name] = true
		out, _ := f.value(nil, source{image: it})
		if len(out) > 0 {
			doc[f.name] = decode(out)
		}
	}
	flat := make([]*oracleMap, len(o.Flatten))
	var members func(m oracleMap, into map[string]any, top bool, prefix string)
	put := func(into map[string]any, top bool, name string, v func() any) {
		if _, there := into[name]; there || top && reserved[name] {
			lost = append(lost, name)
			return
		}
		into[name] = nil // a field that is found meanwhile comes after it
		into[name] = v()
	}
	var value func(v item.Value, at oracleMap) any
	value = func(v item.Value, at oracleMap) any {
		switch v.Kind() {
		case item.M:
			into := map[string]any{}
			at.it = v.Map()
			members(at, into, false, "")
			return into
		case item.L:
			l := []any{}
			at.list = true
			for e := range v.List() {
				if at.covered || e.Kind() == item.M || e.Kind() == item.L {
					l = append(l, value(e, at))
				}
			}
			return l
		}
		return decode(v.AppendJSON(nil, item.JSON{SortedSets: true}))
	}
	members = func(m oracleMap, into map[string]any, top bool, prefix string) {
		renamed := make([]func() any, len(o.Rename))
		for name, v := range m.it.All() {
			path := m.path + name
			child := oracleMap{path: path + ".", list: m.list, covered: m.covered || slices.Contains(o.Include, path)}
			onTheWay := slices.ContainsFunc(o.Include, func(i string) bool { return strings.HasPrefix(i, path+".") })
			isMap := v.Kind() == item.M || v.Kind() == item.L
			if slices.Contains(o.Exclude, path) || !child.covered && !(onTheWay && isMap) {
				continue
			}
			f := slices.IndexFunc(o.Flatten, func(f Flatten) bool { return f.Path == path })
			r := slices.IndexFunc(o.Rename, func(r Rename) bool { return r.From == path })
			switch {
			case f >= 0 && !m.list && v.Kind() == item.M && flat[f] == nil:
				child.it = v.Map()
				flat[f] = &child
			case r >= 0:
				renamed[r] = func() any { return value(v, child) }
			default:
				put(into, top, prefix+name, func() any { return value(v, child) })
			}
		}
		for r, v := range renamed {
			if v != nil {
				put(into, top, prefix+o.Rename[r].To, v)
			}
		}
	}
	members(oracleMap{it: it, covered: len(o.Include) == 0}, doc, true, "")
	written := make([]bool, len(flat))
	for again := true; again; {
		again = false
		for i, m := range flat {
			if m != nil && !written[i] {
				written[i], again = true, true
				members(*m, doc, true, o.Flatten[i].Prefix)
			}
		}
	}
	return doc, lost
}

type oracleMap struct {
	it      item.Item
	path    string
	covered bool
	list    bool
}

func decode(b []byte) any {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(fmt.Sprintf("%v: %s", err, b))
	}
	return v
}
