package config

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

// large are two images near DynamoDB's limit of 400 KB for an item.
func large(t testing.TB) *sluice.Record {
	const many = 12_000
	var texts, numbers, fractions, digits, lines []string
	for i := range many {
		numbers = append(numbers, fmt.Sprint(1_000_000+i))
		fractions = append(fractions, fmt.Sprintf("%d.5", 1_000+i))
		digits = append(digits, fmt.Sprintf("1234567890123456789012%05d", i))
		texts = append(texts, fmt.Sprintf("tag-%05d", i))
		lines = append(lines, fmt.Sprintf(`{"M":{"sku":{"S":"s%05d"},"q":{"N":"%d"}}}`, i, i%7))
	}
	long := strings.Repeat("all work and no play, ", 180_000/22)
	image := func(status string, rest string) sluice.Item {
		return parseItem(t, `{"id":{"S":"1"},"status":{"S":"`+status+`"},`+rest+`}`)
	}
	body := func(part func(all []string) string) string {
		set := func(kind string, all []string) string {
			return `{"` + kind + `":["` + strings.ReplaceAll(part(all), ",", `","`) + `"]}`
		}
		return `"numbers":` + set("NS", numbers) + `,"fractions":` + set("NS", fractions[:many/4]) + `,"digits":` + set("NS", digits[:many/6]) +
			`,"texts":` + set("SS", texts[:many/2]) + `,"long":{"S":"` + long[:100_000] + `"},"lines":{"L":[` + part(lines[:many/12]) + `]}`
	}
	backwards := func(all []string) string {
		all = slices.Clone(all)
		slices.Reverse(all)
		return strings.Join(all, ",")
	}
	return &sluice.Record{
		EventName: sluice.Modify, Table: "orders", Keys: parseItem(t, `{"id":{"S":"1"}}`),
		New: image("active", body(func(all []string) string { return strings.Join(all, ",") })),
		Old: image("new", body(backwards)),
	}
}

// corpus are typical expressions, over large items.
var corpus = map[string]bool{
	`new.status == "active" && old.status != new.status`:                 true,
	`all(new.numbers, # in old.numbers)`:                                 true,
	`any(new.numbers, not (# in old.numbers))`:                           false,
	`all(new.fractions, # in old.fractions)`:                             true,
	`all(new.digits, # in old.digits)`:                                   true,
	`all(new.texts, # in old.texts) && all(old.texts, # in new.texts)`:   true,
	`count(new.texts, # startsWith "tag-00") == 1000`:                    true,
	`any(new.lines, .q > 5 && .sku == "s00006")`:                         true,
	`len(filter(new.lines, .q == 0)) > 100`:                              true,
	`"play" in split(new.long, " ")`:                                     false,
	`new.long matches "(?i)NO PLAY.*work$" || new.long contains "play,"`: true,
	`lower(new.long) == new.long && trim(new.long) != "x"`:               true,
	`new.numbers == old.numbers && new.lines != old.lines`:               true,
	`new == old`: false,
	`len(map(new.numbers, # * 2)) == len(new.numbers)`:                                        true,
	`max(new.numbers) > min(new.numbers) && first(new.numbers) != last(new.numbers)`:          true,
	`new.status in ["a", "b", "active"] && 1000001 in new.numbers`:                            true,
	`any(new.lines, .sku in new.texts) || one(new.texts, # == "tag-00001")`:                   true,
	`all(split(new.long, " "), len(#) < 10)`:                                                  true,
	`none(new.texts, # matches "^tag-[0-9]{5}$" == false) && find(new.lines, .q == 3).q == 3`: true,
}

// The cost of large items is bounded, in counted work and in memory.
func TestWhenWork(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	rec := large(t)
	for text, want := range corpus {
		w, err := compile(text, router.Attribute("entityType"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		e := w.pool.New().(*evaluation)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := w.run(e, rec)
		runtime.ReadMemStats(&after)
		if got != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > mostBytes {
			t.Errorf("%s takes %d bytes of memory, more than %d", text, n, mostBytes)
		}
		t.Logf("%10d %10d %s", maxWork-e.work.left, after.TotalAlloc-before.TotalAlloc, text)
	}
}

// Every function and operator that reads a whole text or list counts it when it runs
// for each element of another list.
func TestWhenWorkIsCounted(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	rec := large(t)
	bodies := map[string]string{
		"in":         `old.lines in [old.texts, old.lines]`,
		"==":         `old.lines == new.lines`,
		"!=":         `old.long != # + new.long`,
		"+":          `len(new.long + #) == 1`,
		"contains":   `new.long contains #`,
		"startsWith": `new.long startsWith new.long`,
		"endsWith":   `new.long endsWith new.long`,
		"matches":    `new.long matches "nothing$"`,
		"<":          `new.long < old.long`,
		">=":         `new.long >= old.long`,
		"?:":         `(new.long == old.long ? new.long : old.long) == new.long`,
		"let":        `let s = new.long; s == old.long`,
		"all":        "", "any": "", "none": "", "one": "", "count": "", "filter": "", "map": "", "find": "", // not allowed in a condition
		"first": "", "last": "", "abs": "", "ceil": "", "floor": "", "round": "", // read one element
		"len":       `len(new.long) == 1`,
		"lower":     `lower(new.long) == #`,
		"upper":     `upper(new.long) == #`,
		"trim":      `trim(new.long) == #`,
		"split":     `len(split(new.long, "y")) == 1`,
		"hasPrefix": `hasPrefix(new.long, new.long)`,
		"hasSuffix": `hasSuffix(new.long, new.long)`,
		"indexOf":   `indexOf(new.long, "x") == 1`,
		"min":       `min(new.numbers) == 1`,
		"max":       `max(new.numbers) == 1`,
	}
	for _, name := range functions {
		if _, ok := bodies[name]; !ok {
			t.Errorf("nothing is known of %s", name)
		}
	}
	for name, body := range bodies {
		if body == "" {
			continue
		}
		for _, text := range []string{
			`count(new.texts, ` + body + `) == -1`,
			`len(map(new.texts, ` + body + ` ? 1 : 2)) == -1`,
		} {
			if name == "let" && !strings.HasPrefix(text, "count") {
				continue
			}
			w, err := compile(text, router.Attribute("entityType"))
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			if _, err := w.match(rec); err == nil || !strings.Contains(err.Error(), "it takes too long for the record") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

func TestWhenWorkOfSplit(t *testing.T) {
	rec := &sluice.Record{New: item.Of(item.String("s", strings.Repeat(",", 350_000)))}
	w, err := compile(`len(split(new.s, ",")) > 1`, router.Attribute("entityType"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.match(rec); err == nil || !strings.Contains(err.Error(), "it takes too long") {
		t.Errorf("350,001 parts: %v", err)
	}
	if w, err = compile(`len(split(new.s, ",", 3)) == 3`, router.Attribute("entityType")); err != nil {
		t.Fatal(err)
	}
	if ok, err := w.match(rec); !ok || err != nil {
		t.Errorf("3 parts: %v, %v", ok, err)
	}
}

// in gives the same results for a hashed list and for a searched one.
func TestWhenHashedIn(t *testing.T) {
	values := []any{
		nil, true, false, "", "5", "a", 5, -5, 0, 5.0, 0.5, -0.5, 1e22, 9007199254740993, 9007199254740992.0,
		decimal("12345678901234567890123"), decimal("0.10000000000000000001"), decimal("-0.10000000000000000001"), 0.1,
		[]any{}, []any{5}, []any{5.0}, []any{"a", nil}, map[string]any{"a": 1}, map[string]any{},
	}
	for i := range values {
		list := append(make([]any, 0, 40), values[i:]...)
		for len(list) <= fewMembers {
			list = append(list, "more")
		}
		w := &work{}
		for _, needle := range append(slices.Clone(values), "more", 77) {
			w.left = maxWork
			want, _ := in(needle, list)
			for range 3 {
				if got, err := w.in(needle, list); got != want || err != nil {
					t.Errorf("%v (%T) in %v: %v, %v; want %v", needle, needle, list, got, err, want)
				}
			}
		}
		if w.lists[&list[0]].scalar == nil {
			t.Error("it is not hashed")
		}
	}
}

// A retry does not evaluate the expression again. A record for which the expression
// fails never reaches the handler.
func TestWhenIsEvaluatedOnce(t *testing.T) {
	evaluated := 0
	count := router.Func(func(*sluice.Record) (string, error) { evaluated++; return "order", nil })
	w, err := compile(`type == "order" && new.n > 4`, count)
	if err != nil {
		t.Fatal(err)
	}
	record := func(id string, n item.Attribute) sluice.Record {
		return streamtest.Insert("t", item.Of(item.String("id", id), item.String("entityType", "order"), n))
	}
	for _, failed := range []bool{false, true} {
		calls, want := 0, 1
		r := router.New()
		handler := func(context.Context, *sluice.Record) error {
			switch calls++; calls {
			case 1:
				return errors.New("not yet")
			case 2:
				return &sluice.Remaining{Err: errors.New("not yet")}
			case 3:
				return sluice.Skip("no need")
			}
			t.Error("called again")
			return nil
		}
		if err := r.Add("test", "order#*", handler, append(w.options(), router.Backoff(1, 1))...); err != nil {
			t.Fatal(err)
		}
		if failed {
			want = 2
			rec := record("0", item.String("n", "text"))
			if err := r.Dispatch(t.Context(), &rec); !sluice.IsPermanent(err) || calls > 0 {
				t.Fatalf("%v, %d calls", err, calls)
			}
		}
		evaluated = 0
		f := flow.Open(t.Context(), r, flow.Options{})
		if _, err := f.Submit(t.Context(), record("1", item.Number("n", "5"))); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Close(t.Context()); err != nil || calls != 3 || evaluated != want {
			t.Errorf("after a failure %v: %v, %d calls, evaluated %d times, want %d", failed, err, calls, evaluated, want)
		}
	}
}

func BenchmarkWhenLarge(b *testing.B) {
	rec := large(b)
	for text := range corpus {
		b.Run(strings.ReplaceAll(text, " ", ""), func(b *testing.B) {
			w, err := compile(text, router.Attribute("entityType"))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.match(rec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
