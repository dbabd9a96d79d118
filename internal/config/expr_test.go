package config

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
)

func parseItem(t testing.TB, text string) sluice.Item {
	t.Helper()
	it, err := item.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return it
}

func changed(t testing.TB) *sluice.Record {
	return &sluice.Record{
		EventName: sluice.Modify, Table: "orders",
		Keys: parseItem(t, `{"pk":{"S":"o1"}}`),
		Old:  parseItem(t, `{"pk":{"S":"o1"},"status":{"S":"new"},"n":{"N":"4"},"tags":{"SS":["b","a"]},"nums":{"NS":["2.50","1"]}}`),
		New: parseItem(t, `{"pk":{"S":"o1"},"entityType":{"S":"order"},"status":{"S":"active"},"n":{"N":"5"},"price":{"N":"0.10"},
			"big":{"N":"9007199254740993"},"huge":{"N":"12345678901234567890123"},"huge1":{"N":"12345678901234567890124"},"tiny":{"N":"0.10000000000000000001"},"e":{"N":"1E2"},
			"live":{"BOOL":true},"none":{"NULL":true},"bin":{"B":"AQI="},"tags":{"SS":["a","b"]},"nums":{"NS":["1","2.5"]},
			"address":{"M":{"city":{"S":"Ulm"},"geo":{"M":{"lat":{"N":"48.4"}}}}},"lines":{"L":[{"M":{"sku":{"S":"x"},"q":{"N":"2"}}},{"M":{"sku":{"S":"y"}}}]},
			"a.b":{"S":"dotted"},"a b":{"S":"spaced"}}`),
	}
}

func TestWhen(t *testing.T) {
	rec := changed(t)
	for text, want := range map[string]bool{
		`new.status == "active" && old.status != new.status`: true,
		`new.status == 'new'`:                                false,
		`new.missing == "x"`:                                 false,
		`new.missing == nil`:                                 true,
		`new.none == nil`:                                    true,
		`new.missing != "x"`:                                 true,
		`new.missing > 5`:                                    false,
		`new.missing < 5`:                                    false,
		`!(new.missing < 5)`:                                 true,
		`5 >= new.missing`:                                   false,
		`new.missing in ["a"]`:                               false,
		`new.missing in [1, 2]`:                              false,
		`new.status in ["active", "open"]`:                   true,
		`new.status not in ["active", "open"]`:               false,
		`new.n in [1, 5.0]`:                                  true,
		`new.n in new.nums`:                                  false,
		`2.5 in new.nums`:                                    true,
		`"a" in new.tags`:                                    true,
		`"a" in new.missing`:                                 false,
		`"city" in new.address`:                              true,
		`new.missing.deep.er == nil`:                         true,
		`new.status.deep == nil`:                             true,
		`new.address.city == "Ulm"`:                          true,
		`new.address.geo.lat > 48`:                           true,
		`new?.address?.city == "Ulm"`:                        true,
		`new.lines[0].sku == "x"`:                            true,
		`new.lines[7].sku == nil`:                            true,
		`new.lines[-1].sku == "y"`:                           true,
		`new["a b"] == "spaced"`:                             true,
		`new["a.b"] == "dotted"`:                             true,
		`new[event] == nil`:                                  true,
		`any(new.lines, .q > 1)`:                             true,
		`all(new.lines, .q > 1)`:                             false,
		`any(new.lines, #.sku == "y")`:                       true,
		`len(filter(new.tags, # != "a")) == 1`:               true,
		`len(new.tags) == 2`:                                 true,
		`lower(new.status) startsWith "act"`:                 true,
		`new.missing startsWith "act"`:                       false,
		`new.missing contains "act"`:                         false,
		`new.missing matches "act"`:                          false,
		`new.status matches "^a.t"`:                          true,
		`new.live`:                                           true,
		`new.missing`:                                        false,
		`!new.missing`:                                       true,
		`new.live && new.missing`:                            false,
		`new.missing ? true : new.live`:                      true,
		`(new.missing ?? 3) == 3`:                            true,
		`new.n - old.n == 1`:                                 true,
		`new.price == 0.1`:                                   true,
		`new.price < 0.11`:                                   true,
		`new.tiny > 0.1`:                                     true,
		`new.tiny == 0.1`:                                    false,
		`new.big == 9007199254740993`:                        true,
		`new.big == 9007199254740992`:                        false,
		`new.big > 9007199254740992`:                         true,
		`new.huge < new.huge1`:                               true,
		`new.huge == new.huge`:                               true,
		`new.huge == new.huge1`:                              false,
		`new.huge > 5`:                                       true,
		`new.e == 100`:                                       true,
		`new.bin == "AQI="`:                                  true,
		`event == "MODIFY" && table == "orders"`:             true,
		`type == "order"`:                                    true,
		`keys.pk == "o1"`:                                    true,
		`new != nil && old != nil`:                           true,
		`nil == new`:                                         false,
		`let s = new.status; s == "active"`:                  true,
		`split(new["a.b"], "tt")[1] == "ed"`:                 true,
		`split(new["a.b"], "tt")[-1] == "ed"`:                true,
		`"ed" in split(new["a.b"], "tt")`:                    true,
		`first(split(new["a.b"], "tt")) == "do"`:             true,
		`split(new["a.b"], "tt") == ["do", "ed"]`:            true,
		`new.tags == old.tags`:                               true,
		`new.nums == old.nums`:                               true,
		`new.big * 1000 == 9007199254740993000`:              true,
		`0 - 3 * new.n * -1 - 15 == 0`:                       true,
		`new.n + 0 == 5 && new.n - 0 == 5 && new.n * 0 == 0`: true,
		`new.n - 7 == -2 && new.n + -7 == -2`:                true,
		`new.price * 2 == 0.2 && new.n + 60 * 60 == 3605`:    true,
		`new == old`:                                         false,
		`new.address == old.address`:                         false,
	} {
		w, err := compile(text, router.Attribute("entityType"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for range 2 { // the second evaluation reuses memory
			if got, err := w.match(rec); err != nil || got != want {
				t.Errorf("%s: %v, %v; want %v", text, got, err, want)
			}
		}
	}
}

// A missing image is nil, and so are its attributes.
func TestWhenImageIsAbsent(t *testing.T) {
	rec := &sluice.Record{EventName: sluice.Insert, New: parseItem(t, `{"a":{"S":"x"}}`)}
	for text, want := range map[string]bool{
		`old == nil`: true, `old != nil`: false, `old.a == nil`: true, `old.a != new.a`: true, `"a" in old`: false, `len(new) == 1`: true,
	} {
		w, err := compile(text, router.Attribute("entityType"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := w.match(rec); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestWhenRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`status == "x"`:               "column 1: there is no status; want new, old, keys, event, table or type, such as new.status",
		`new.a == "x" && now() > 1`:   "column 17: there is no function now; there are all, any",
		`new.a ==`:                    "it ends where more is expected",
		`new.a >> 3`:                  "unexpected >",
		`new.a = 1`:                   "column 7: unexpected =: to compare is ==",
		`new.a == "x`:                 "literal not terminated",
		`event == 5`:                  "column 7: ",
		`"text"`:                      "column 1: it is neither true nor false",
		`1 + 2`:                       "column 3: what + makes is neither true nor false",
		`new.a matches "("`:           "column 15: error parsing regexp",
		`new.a matches new.b`:         "the pattern of matches is a text",
		`1 in 1..1000000`:             "there are no ranges",
		`any(new.a, any(.b, # == 1))`: "within the condition of another",
		`new.a + new.b`:               "what + makes is neither",
		`split(new.a, "-")`:           "what split makes is neither",
		`len(split(new.a)) > 1`:       "not enough arguments",
		`new.a()`:                     "cannot be called",
		`$env == nil`:                 "there is no $env",
		`let new = 1; true`:           "new is there already",
		`repeat("x", 10) == new.a`:    "there is no function repeat",
		`reduce(new.lines, #acc + #acc, "x") == "y"`:   "column 1: there is no function reduce; there are all, any",
		`sum(new.nums) > 1`:                            "there is no function sum",
		`new.a > 1 && len(sortBy(new.lines, .q)) > 1`:  "column 18: there is no function sortBy",
		`len(groupBy(new.lines, .q)) > 1`:              "there is no function groupBy",
		strings.Repeat(`new.a == 1 || `, 300) + `true`: "exceeds maximum",
	} {
		_, err := compile(text, router.Attribute("entityType"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
	if _, err := compile(strings.Repeat("(", 1<<20), router.Attribute("entityType")); err == nil || !strings.Contains(err.Error(), "more than the 8192") {
		t.Errorf("%v", err)
	}
	if _, err := compile(strings.Repeat("!", 8000)+"new.a", router.Attribute("entityType")); err == nil {
		t.Error("8000 negations are too many")
	}
	if _, err := compile(`old.a == 1`, router.Resolver{}, "new"); err == nil {
		t.Error("an item has no old image")
	}
}

// doubled returns an expression that doubles a text n times.
func doubled(n int) string {
	text := "let a0 = new.status; "
	for i := range n {
		text += fmt.Sprintf("let a%d = a%d + a%d; ", i+1, i, i)
	}
	return text + fmt.Sprintf("a%d == old.status", n)
}

// A record for which an expression fails is a failure of its route. The error quotes no
// value.
func TestWhenFails(t *testing.T) {
	rec := changed(t)
	for text, want := range map[string]string{
		`new.status > 5`:                        "line 1, column 12: a text > a number: want two numbers or two texts",
		`new.status && true`:                    "a text is neither true nor false",
		`new.status + 1 == 2`:                   "invalid operation: string + int",
		`len(new.missing) == 0`:                 "len",
		`new.n startsWith "x"`:                  "a number startsWith a text",
		`new.huge + 1 == 2`:                     "number of many digits",
		`any(new.n, # == 1)`:                    "",
		`split(new.missing, "-")[0] == "x"`:     "split of nothing: want text",
		`new.big * new.big > 5`:                 "the result is no integer of 64 bits",
		`new.big*1000 + new.big*1000 > 5`:       "the result is no integer of 64 bits",
		`-new.big*1000 - new.big*1000 < 5`:      "the result is no integer of 64 bits",
		doubled(30):                             "+ makes a text of",
		`new.status == "active" ? new.n : true`: "a number is neither true nor false",
	} {
		w, err := compile(text, router.Attribute("entityType"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := w.match(rec)
		if err == nil || got || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "active") > strings.Count(text, "active") {
			t.Errorf("%s: %v, %v; want %s", text, got, err, want)
		}
		called := false
		r := router.New()
		if err := r.Add("test", "order#*", func(context.Context, *sluice.Record) error { called = true; return nil }, w.options()...); err != nil {
			t.Fatal(err)
		}
		if err := r.Dispatch(t.Context(), rec); !sluice.IsPermanent(err) || called {
			t.Errorf("%s: the route returned %v, its handler was called: %v", text, err, called)
		}
	}
}

// The expression when of a route selects its records.
func TestBuildWhen(t *testing.T) {
	w := newWorld()
	app := w.build(t, one(Route{When: `new.status == "active" && type == "order"`, Send: &Send{To: "jobs", Body: "{$event}"}}))
	rec := changed(t)
	other := *rec
	other.New = rec.Old
	for _, r := range []*sluice.Record{rec, &other} {
		if err := app.Router.Dispatch(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.sent) != 1 || w.sent[0].Message.Body != "MODIFY" {
		t.Errorf("%+v", w.sent)
	}
	fails(t, one(Route{When: "new.a ==", Log: &Log{}}), "routes[0].when: it ends where more is expected")
}

func TestWhenNeedsImages(t *testing.T) {
	for text, want := range map[string]item.View{
		`event == "INSERT"`: item.KeysOnly, `keys.a == 1`: item.KeysOnly, `new.a == 1`: item.NewImage,
		`old == nil`: item.OldImage, `new.a != old.a`: item.BothImages,
	} {
		w, err := compile(text, router.Attribute("entityType"))
		if err != nil {
			t.Fatal(err)
		}
		if w.reads() != want {
			t.Errorf("%s reads %v, want %v", text, w.reads(), want)
		}
	}
}

func TestCompileErrorsAreTyped(t *testing.T) {
	_, err := compile("new.a ==\n  now()", router.Attribute("entityType"))
	at := (*exprError)(nil)
	if !errors.As(err, &at) || at.line != 2 || at.column != 2 {
		t.Errorf("%v", err)
	}
}

func BenchmarkWhen(b *testing.B) {
	rec := changed(b)
	for _, text := range []string{
		`new.status == "active"`,
		`new.status == "active" && old.status != new.status`,
		`new.n > 4 && new.address.city in ["Ulm", "Bonn"]`,
	} {
		b.Run(strings.ReplaceAll(text, " ", ""), func(b *testing.B) {
			w, err := compile(text, router.Attribute("entityType"))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := w.match(rec); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}
