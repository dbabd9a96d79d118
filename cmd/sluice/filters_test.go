package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

// passes reports whether a record gets through, as Lambda compares: one filter
// is enough, each of its fields has to match, one value of a field's list is
// enough.
func passes(t *testing.T, patterns []string, rec []byte) bool {
	t.Helper()
	if len(patterns) == 0 {
		return true
	}
	var value any
	if err := json.Unmarshal(rec, &value); err != nil {
		t.Fatal(err)
	}
	for _, text := range patterns {
		var p any
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		if matches(t, p, value) {
			return true
		}
	}
	return false
}

func matches(t *testing.T, pattern, value any) bool {
	switch p := pattern.(type) {
	case map[string]any:
		v, _ := value.(map[string]any)
		for name, sub := range p {
			if !matches(t, sub, v[name]) {
				return false
			}
		}
		return true
	case []any:
		return slices.ContainsFunc(p, func(one any) bool { return matchesOne(t, one, value) })
	}
	t.Fatalf("a pattern's field is %v, want an object or a list", pattern)
	return false
}

func matchesOne(t *testing.T, want, value any) bool {
	text, isText := value.(string)
	switch w := want.(type) {
	case string:
		return isText && text == w
	case map[string]any:
		for operator, operand := range w {
			switch operator {
			case "prefix":
				return isText && strings.HasPrefix(text, operand.(string))
			case "suffix":
				return isText && strings.HasSuffix(text, operand.(string))
			case "exists":
				_, isObject := value.(map[string]any)
				return (value != nil && !isObject) == operand.(bool)
			}
		}
	}
	t.Fatalf("an operator that mappings do not have: %v", want)
	return false
}

var (
	worldTypes  = []string{"search", "order", "it's", "a#b", "7"}
	worldTables = []string{"one", "two"}
	keyPatterns = []string{"{type}#**", "TYPE#*#{type}", "{type}-*", "*-{type}", "*x{type}z*", "{type}", "#{type}", "x*#{type}#**"}
)

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func randomResolver(r *rand.Rand, depth int) config.EntityType {
	switch r.IntN(5 + depth) {
	case 0:
		return config.EntityType{Attribute: "kind"}
	case 1:
		return config.EntityType{Key: &config.KeyPattern{Attribute: "pk", Pattern: pick(r, keyPatterns)}}
	case 2:
		return config.EntityType{Tables: map[string]string{"one": pick(r, worldTypes)}}
	case 3:
		return config.EntityType{Attribute: "meta.type"}
	case 4:
		return config.EntityType{Attribute: "pk"}
	}
	var e config.EntityType
	for range 1 + r.IntN(3) {
		e.First = append(e.First, randomResolver(r, 0))
	}
	return e
}

func (w *filterWorld) resolver(e config.EntityType) router.Resolver {
	switch {
	case len(e.First) > 0:
		var all []router.Resolver
		for _, one := range e.First {
			all = append(all, w.resolver(one))
		}
		return router.Chain(all...)
	case e.Key != nil:
		return router.KeyPattern(e.Key.Attribute, e.Key.Pattern)
	case e.Tables != nil:
		return router.Table(e.Tables)
	}
	return router.Attribute(e.Attribute)
}

// filterWorld is random routes, as a file has them and as a router.
type filterWorld struct {
	cfg    config.Config
	router *router.Router
}

func newFilterWorld(r *rand.Rand) *filterWorld {
	w := &filterWorld{}
	w.cfg.EntityType = randomResolver(r, 1)
	w.router = router.New(router.TypeFrom(w.resolver(w.cfg.EntityType)))
	for i := range 1 + r.IntN(5) {
		route := config.Route{Name: fmt.Sprint("r", i)}
		patterns := map[string]bool{}
		for range 1 + r.IntN(3) {
			typ := pick(r, worldTypes)
			if r.IntN(8) == 0 {
				typ = "*"
			}
			patterns[typ+"#"+pick(r, []string{"INSERT", "MODIFY", "REMOVE", "*", "SNAPSHOT"})] = true
		}
		for p := range patterns {
			route.On = append(route.On, p)
		}
		options := []router.Option{router.Name(route.Name)}
		switch r.IntN(6) {
		case 0:
			route.TTL, options = "only", append(options, router.OnlyTTL())
		case 1:
			route.TTL, options = "exclude", append(options, router.ExcludeTTL())
		case 2:
			route.Changed, options = config.Strings{"n"}, append(options, router.Changed("n"))
		}
		w.cfg.Routes = append(w.cfg.Routes, route)
		w.router.Handle(strings.Join(route.On, " "), func(context.Context, *sluice.Record) error { return nil }, options...)
	}
	return w
}

func randomItem(r *rand.Rand, pk string) sluice.Item {
	it := item.Of(item.String("pk", pk), item.Number("n", fmt.Sprint(r.IntN(2))))
	if r.IntN(3) > 0 {
		it = it.With(item.String("kind", pick(r, worldTypes)))
	}
	switch r.IntN(4) {
	case 0:
		it = it.With(item.Map("meta", item.Of(item.String("type", pick(r, worldTypes)))))
	case 1:
		it = it.With(item.String("meta.type", pick(r, worldTypes)))
	}
	return it
}

func randomRecord(r *rand.Rand, view item.View) sluice.Record {
	typ := pick(r, worldTypes)
	pk := pick(r, []string{typ, typ + "#1", typ + "#1#2", "TYPE#q#" + typ, typ + "-5", "5-" + typ, "ax" + typ + "z", "#" + typ, "xy#" + typ + "#z", "other"})
	table, opt := pick(r, worldTables), streamtest.WithView(view)
	switch r.IntN(4) {
	case 0:
		return streamtest.Insert(table, randomItem(r, pk), opt)
	case 1:
		return streamtest.Modify(table, randomItem(r, pk), randomItem(r, pk), opt)
	case 2:
		return streamtest.Expire(table, randomItem(r, pk), opt)
	}
	return streamtest.Remove(table, randomItem(r, pk), opt)
}

// The filters pass every record that a route takes, for every view and with an unknown
// view. The filters stay within Lambda's limits.
func TestFiltersDropNothing(t *testing.T) { filtersDropNothing(t, 200) }

func filtersDropNothing(t *testing.T, seeds int) {
	views := []item.View{item.BothImages, item.NewImage, item.OldImage, item.KeysOnly}
	dropped, taken := 0, 0
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newFilterWorld(r)
		for range 20 {
			view, known := pick(r, views), r.IntN(2) == 0
			rec := randomRecord(r, view)
			patterns, err := lambdaFilters(&w.cfg, rec.Table, view, known)
			if len(patterns) > maxFilters {
				t.Fatalf("seed %d: %d filters", seed, len(patterns))
			}
			routes, _ := w.router.Match(nil, &rec) // what it refuses is not taken
			if err != nil {
				if len(routes) > 0 {
					t.Fatalf("seed %d: %v, but route %s takes %s", seed, err, routes[0].Name, rec.Raw())
				}
				continue
			}
			through := passes(t, patterns, rec.Raw())
			if len(routes) > 0 && !through {
				t.Fatalf("seed %d: route %s %v of %+v takes\n%s\nview %v (known: %v), but the filters drop it:\n%+v",
					seed, routes[0].Name, w.cfg.Routes[routes[0].Index].On, w.cfg.EntityType, rec.Raw(), view, known, patterns)
			}
			if !through {
				dropped++
			}
			if len(routes) > 0 {
				taken++
			}
		}
	}
	if dropped < seeds || taken < seeds {
		t.Errorf("%d records were dropped and %d taken: the test says little", dropped, taken)
	}
}

// As the help says, filters drop records whose type attribute is not a string. The
// router refuses them.
func TestFiltersDropTypesThatAreNoStrings(t *testing.T) {
	cfg := config.Config{Routes: []config.Route{{Name: "r", On: config.Strings{"order#*"}}}}
	r := router.New()
	r.Handle("order#*", func(context.Context, *sluice.Record) error { return nil })
	rec := streamtest.Insert("t", item.Of(item.String("pk", "1"), item.Number("entityType", "1")))
	if _, err := r.Match(nil, &rec); !sluice.IsPermanent(err) {
		t.Errorf("the router says %v, want a permanent failure", err)
	}
	patterns, err := lambdaFilters(&cfg, "t", item.BothImages, true)
	if err != nil {
		t.Fatal(err)
	}
	if passes(t, patterns, rec.Raw()) {
		t.Errorf("it passes %v", patterns)
	}
}

func TestFilters(t *testing.T) {
	many := func(n int, size int) (routes []config.Route) {
		for i := range n {
			routes = append(routes, config.Route{Name: fmt.Sprint(i), On: config.Strings{fmt.Sprintf("%s%d#%s", strings.Repeat("t", size), i, streamEvents[i%3])}})
		}
		return routes
	}
	on := func(patterns ...string) []config.Route { return []config.Route{{Name: "r", On: patterns}} }
	byKey := config.EntityType{Key: &config.KeyPattern{Attribute: "pk", Pattern: "{type}"}}
	const ofType = `{"dynamodb":{"Keys":{"pk":{"S":["%s"]}}},"eventName":["INSERT"]}`
	longest := strings.Repeat("t", maxPattern-len(ofType)+len("%s"))
	for _, tt := range []struct {
		name   string
		cfg    config.Config
		known  bool
		want   []string
		reason string
	}{
		{"by attribute", config.Config{Routes: on("order#INSERT", "order#REMOVE")}, true, []string{
			`{"dynamodb":{"NewImage":{"entityType":{"S":["order"]}}},"eventName":["INSERT"]}`,
			`{"dynamodb":{"OldImage":{"entityType":{"S":["order"]}}},"eventName":["REMOVE"]}`,
		}, ""},
		{"of any view", config.Config{Routes: on("order#INSERT")}, false, []string{
			`{"dynamodb":{"Keys":{"entityType":{"S":["order"]}}},"eventName":["INSERT"]}`,
			`{"dynamodb":{"NewImage":{"entityType":{"S":["order"]}}},"eventName":["INSERT"]}`,
		}, ""},
		{"by key", config.Config{EntityType: config.EntityType{Key: &config.KeyPattern{Attribute: "pk", Pattern: "{type}#**"}}, Routes: on("a#*", "b#*")}, true, []string{
			`{"dynamodb":{"Keys":{"pk":{"S":[{"prefix":"a#"},{"prefix":"b#"}]}}}}`,
		}, ""},
		{"any type", config.Config{Routes: on("*#REMOVE", "order#REMOVE")}, true, []string{`{"eventName":["REMOVE"]}`}, ""},
		{"all", config.Config{Routes: on("*#*", "order#INSERT")}, true, nil, ""},
		{"expired", config.Config{Routes: []config.Route{{Name: "r", On: config.Strings{"*#*"}, TTL: "only"}}}, true, []string{
			`{"eventName":["REMOVE"],"userIdentity":{"principalId":["dynamodb.amazonaws.com"],"type":["Service"]}}`,
		}, ""},
		{"expired or not", config.Config{Routes: []config.Route{{Name: "r", On: config.Strings{"*#*"}, TTL: "only"}, {Name: "s", On: config.Strings{"*#REMOVE"}}}}, true, []string{`{"eventName":["REMOVE"]}`}, ""},
		{"expired of a type", config.Config{EntityType: byKey, Routes: []config.Route{{Name: "r", On: config.Strings{"a#*"}, TTL: "only"}}}, true, []string{
			`{"dynamodb":{"Keys":{"pk":{"S":["a"]}}},"eventName":["REMOVE"],"userIdentity":{"principalId":["dynamodb.amazonaws.com"],"type":["Service"]}}`,
		}, ""},
		{"never expired when new", config.Config{Routes: []config.Route{{Name: "r", On: config.Strings{"*#INSERT"}, TTL: "only"}}}, true, nil, "no route takes a record of the stream"},
		{"as many as fit", config.Config{EntityType: byKey, Routes: on("a#INSERT", "b#MODIFY", "c#REMOVE", "d#INSERT", "d#MODIFY", "e#MODIFY", "e#REMOVE")}, true, []string{
			`{"dynamodb":{"Keys":{"pk":{"S":["a"]}}},"eventName":["INSERT"]}`,
			`{"dynamodb":{"Keys":{"pk":{"S":["b"]}}},"eventName":["MODIFY"]}`,
			`{"dynamodb":{"Keys":{"pk":{"S":["c"]}}},"eventName":["REMOVE"]}`,
			`{"dynamodb":{"Keys":{"pk":{"S":["d"]}}},"eventName":["INSERT","MODIFY"]}`,
			`{"dynamodb":{"Keys":{"pk":{"S":["e"]}}},"eventName":["MODIFY","REMOVE"]}`,
		}, ""},
		{"as long as fits", config.Config{EntityType: byKey, Routes: on(longest + "#INSERT")}, true, []string{fmt.Sprintf(ofType, longest)}, ""},
		{"a byte too long", config.Config{EntityType: byKey, Routes: on(longest + "t#INSERT")}, true, []string{`{"eventName":["INSERT"]}`}, ""},
		{"too long, expired", config.Config{EntityType: byKey, Routes: []config.Route{{Name: "r", On: config.Strings{strings.Repeat("t", maxPattern) + "#*"}, TTL: "only"}}}, true, []string{`{"eventName":["REMOVE"]}`}, ""},
		{"one more than fits", config.Config{EntityType: byKey, Routes: on("a#INSERT", "b#MODIFY", "c#REMOVE", "d#INSERT", "d#MODIFY", "e#MODIFY", "e#REMOVE", "f#INSERT", "f#REMOVE")}, true, []string{
			`{"dynamodb":{"Keys":{"pk":{"S":["a","b","c","d","e","f"]}}}}`,
		}, ""},
		{"too many", config.Config{EntityType: config.EntityType{First: []config.EntityType{{Attribute: "a"}, {Attribute: "b"}, {Attribute: "c"}}}, Routes: many(3, 1)}, true, nil, ""},
		{"too long", config.Config{Routes: append(many(80, 200), on("x#SNAPSHOT")...)}, true, nil, ""},
		{"too long but for events", config.Config{Routes: on(strings.Repeat("t", 5000) + "#INSERT")}, true, []string{`{"eventName":["INSERT"]}`}, ""},
		{"no stream", config.Config{Routes: on("order#SNAPSHOT", "job#MESSAGE")}, true, nil, "no route takes a record of the stream"},
		{"other table", config.Config{EntityType: config.EntityType{Tables: map[string]string{"x": "order"}}, Routes: on("order#*")}, true, nil, "no route takes a record of the stream"},
		{"not of a removed one", config.Config{Routes: []config.Route{{Name: "r", On: config.Strings{"*#*"}, Changed: config.Strings{"n"}}}}, true, []string{`{"eventName":["INSERT","MODIFY"]}`}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := lambdaFilters(&tt.cfg, "t", item.BothImages, tt.known)
			if (err == nil) != (tt.reason == "") || err != nil && !strings.Contains(err.Error(), tt.reason) {
				t.Fatalf("error %v, want %q", err, tt.reason)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestPrintFilters(t *testing.T) {
	all := []tableFilter{
		{"one", []string{`{"a":["it's ${x} <"]}`}},
		{"two", nil},
	}
	for _, tt := range []struct{ format, want string }{
		{"sam", "# Table one\nFilterCriteria:\n  Filters:\n    - Pattern: '{\"a\":[\"it''s ${x} <\"]}'\n\n# Table two\n# Every record of the stream may be one that a route takes: no filter.\n"},
		{"terraform", "# Table one\nfilter_criteria {\n  filter {\n    pattern = \"{\\\"a\\\":[\\\"it's $${x} <\\\"]}\"\n  }\n}\n\n# Table two\n# Every record of the stream may be one that a route takes: no filter.\n"},
		{"json", "{\n  \"one\": {\n    \"Filters\": [\n      {\n        \"Pattern\": \"{\\\"a\\\":[\\\"it's ${x} <\\\"]}\"\n      }\n    ]\n  },\n  \"two\": {\n    \"Filters\": []\n  }\n}\n"},
	} {
		var b strings.Builder
		if err := printFilters(&b, tt.format, all); err != nil || b.String() != tt.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", tt.format, err, &b, tt.want)
		}
	}
}
