package config

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
)

const mostBytes = 32 << 20 // bytes that an evaluation may allocate for any item

// evaluated returns the work of an expression for a record, and the allocated bytes.
func evaluated(t *testing.T, text string, rec *sluice.Record) (work int, bytes uint64, got bool, err error) {
	t.Helper()
	w, err := compile(text, router.Attribute("entityType"))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	e := w.pool.New().(*evaluation)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err = w.run(e, rec)
	runtime.ReadMemStats(&after)
	return maxWork - e.work.left, after.TotalAlloc - before.TotalAlloc, got, err
}

// hostile has the most expensive values for their bytes: maps with one short name,
// numbers of two types, long texts, letters of two bytes, lists of lists.
func hostile(t *testing.T, maps, numbers, letters, nulls int) *sluice.Record {
	var small, mixed, none []string
	for i := range maps {
		small = append(small, fmt.Sprintf(`{"M":{"%c":{"S":""}}}`, 'a'+i%26))
	}
	for i := range numbers / 2 {
		mixed = append(mixed, fmt.Sprint(1000+i*7919%numbers), fmt.Sprintf("%d.5", 1000+i*7919%numbers))
	}
	none = slices.Repeat([]string{`{"NULL":true}`}, nulls)
	deep := `{"N":"1"}`
	for range 28 {
		deep = `{"M":{"d":` + deep + `}}`
	}
	image := func(order func([]string) string) sluice.Item {
		return parseItem(t, `{"maps":{"L":[`+order(small)+`]},"mixed":{"NS":["`+strings.ReplaceAll(order(mixed), ",", `","`)+`"]},"deep":`+deep+
			`,"nulls":{"L":[`+order(none)+`]},"s":{"S":"`+strings.Repeat("ɐ", letters)+`"},"c":{"S":"`+strings.Repeat("ĩ", letters)+`ɐ"},"n":{"N":"7"}}`)
	}
	return &sluice.Record{
		EventName: sluice.Modify, Keys: parseItem(t, `{"id":{"S":"1"}}`),
		New: image(func(all []string) string { return strings.Join(all, ",") }),
		Old: image(func(all []string) string {
			all = slices.Clone(all)
			slices.Reverse(all)
			return strings.Join(all, ",")
		}),
	}
}

// The cost of an expression over one expensive attribute is bounded, too.
func TestWhenWorkOfHostileItems(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	const spent = "it takes too long for the record"
	for _, c := range []struct {
		rec        *sluice.Record
		text, want string // text of the error
	}{
		{hostile(t, 60_000, 2, 1, 1), `new == old`, spent},
		{hostile(t, 1, 90_000, 1, 1), `new.mixed == old.mixed`, ""},
		{hostile(t, 1, 2, 90_000, 1), `trim(new.s, new.c) == ""`, spent},
		{hostile(t, 1, 2, 1000, 1), `trim(new.s, new.c) == ""`, ""},
		{hostile(t, 1, 2, 180_000, 1), strings.Repeat("upper(lower(", 60) + "new.s" + strings.Repeat("))", 60) + ` == ""`, spent},
		{hostile(t, 1, 2, 100_000, 1), strings.Repeat("new.s + new.c + new.s + new.c == '' or ", 20) + `false`, spent},
		{hostile(t, 1, 2, 1, 180_000), `new.nulls in [old.nulls, old.nulls, old.nulls, old.nulls, old.nulls, old.nulls]`, spent},
	} {
		work, bytes, _, err := evaluated(t, c.text, c.rec)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%.60s: %d: %v, want %q", c.text, work, err, c.want)
		}
		if bytes > mostBytes && c.want == "" || bytes > mostBytes*5/4 {
			t.Errorf("%.60s: %d bytes", c.text, bytes)
		}
	}
}

// Numbers are ordered as big.Rat orders them.
func TestCompareDecimals(t *testing.T) {
	texts := []string{"0", "-0", "0.0", "1", "-1", "0.1", "0.10", "-0.1", "0.11", "0.09", "10", "9", "-10", "-9", "100", "1E2", "1e-2", "0.01", "5E-1", "1E125", "-1E125", "1E-130",
		"-1E-130", "9.9999999999999999999999999999999999999E125", "9007199254740993", "9007199254740992", "9007199254740992.5", "-9007199254740993",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "12345678901234567890123456789012345678", "0.30000000000000004", "0.3"}
	r := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		n := 1 + r.IntN(38)
		digits := make([]byte, n)
		for i := range digits {
			digits[i] = byte('0' + r.IntN(10))
		}
		sign := []string{"", "-"}[r.IntN(2)]
		texts = append(texts, fmt.Sprintf("%s%c.%se%d", sign, digits[0], string(digits), r.IntN(80)-40))
	}
	type number struct {
		text  string
		value any
		exact *big.Rat
	}
	var all []number
	for _, text := range texts {
		exact, ok := new(big.Rat).SetString(text)
		it, err := item.Parse([]byte(`{"n":{"N":"` + text + `"}}`))
		if err != nil || !ok {
			continue // DynamoDB has no such number
		}
		v, _ := it.Lookup("n")
		all = append(all, number{text, (&work{left: 1}).valueOf(v), exact})
	}
	if len(all) < 60 {
		t.Fatalf("only %d numbers", len(all))
	}
	for _, f := range []float64{0.1, 1e22, -0.5, 5, 1.0 / 3, 1e300, 5e-324} {
		exact, _ := new(big.Rat).SetString(fmt.Sprint(f)) // its shortest decimal form
		all = append(all, number{fmt.Sprint("float64 ", f), f, exact})
	}
	minusNothing := -0.5
	minusNothing *= 0
	all = append(all, number{"float64 -0", minusNothing, new(big.Rat)})
	for _, a := range all {
		for _, b := range all {
			want := a.exact.Cmp(b.exact)
			if got, ok := compare(a.value, b.value); got != want || !ok {
				t.Errorf("%s (%T) and %s (%T): %d, want %d", a.text, a.value, b.text, b.value, got, want)
			}
			x, _ := scalar(a.value)
			y, _ := scalar(b.value)
			if (x == y) != (want == 0) || equal(a.value, b.value) != (want == 0) {
				t.Errorf("%s (%T) and %s (%T) are equal: %v hashed, %v not; want %v", a.text, a.value, b.text, b.value, x == y, equal(a.value, b.value), want == 0)
			}
		}
	}
}

// NaN and infinity equal nothing, hashed or not. No number is below itself.
func TestWhenOfOddNumbers(t *testing.T) {
	rec := &sluice.Record{New: parseItem(t, `{"z":{"N":"0"},"h":{"N":"-0.4"}}`)}
	for _, text := range []string{
		`not (new.z * -1.5 < 0)`, `not (round(new.h) < 0)`, `ceil(new.h) >= 0`, `ceil(new.h) == 0`, `ceil(new.h) in [0]`,
		`let odd = map(split("aaaaaaaaaaaaaaaaaaaaaaaa", ""), 1 / new.z); none(odd, # in odd)`,
	} {
		w, err := compile(text, router.Attribute("entityType"))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if ok, err := w.match(rec); !ok || err != nil {
			t.Errorf("%s: %v, %v", text, ok, err)
		}
	}
}
