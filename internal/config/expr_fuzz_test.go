package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/router"
)

// everything has an attribute of each type, numbers at DynamoDB's limits, and the
// deepest maps and lists of an item.
func everything(t testing.TB) *sluice.Record {
	deep, deepList := `{"S":"s3cret"}`, `{"N":"1"}`
	for range 29 {
		deep, deepList = `{"M":{"d":`+deep+`}}`, `{"L":[`+deepList+`]}`
	}
	const sets = `"ss":{"SS":["s3cret","b"]},"ns":{"NS":["1","1E125","0.10"]},"bs":{"BS":["AQI=","AQM="]}`
	return &sluice.Record{
		EventName: sluice.Modify, Table: "orders", Keys: parseItem(t, `{"pk":{"S":"s3cret"}}`),
		Old: parseItem(t, `{"pk":{"S":"s3cret"},`+sets+`}`),
		New: parseItem(t, `{"pk":{"S":"s3cret"},"s":{"S":"s3cret"},"empty":{"S":""},"n":{"N":"7"},"neg":{"N":"-9223372036854775808"},"frac":{"N":"0.1"},
			"big":{"N":"9.9999999999999999999999999999999999999E125"},"tiny":{"N":"-1E-130"},"digits":{"N":"12345678901234567890123456789012345678"},
			"b":{"B":"AQI="},"t":{"BOOL":true},"f":{"BOOL":false},"null":{"NULL":true},"m":{"M":{}},"l":{"L":[]},
			"deep":`+deep+`,"deepList":`+deepList+`,"mixed":{"L":[{"S":"s3cret"},{"N":"1"},{"NULL":true},{"M":{"a":{"N":"1E100"}}},{"L":[{"BOOL":true}]}]},`+sets+`}`),
	}
}

// holds checks invariants of every expression and record: no panic, the same result
// again, an error without values.
func holds(t *testing.T, text string, recs ...*sluice.Record) (matched, failed int) {
	t.Helper()
	w, err := compile(text, router.Attribute("entityType"))
	if err != nil {
		if at := (*exprError)(nil); !errors.As(err, &at) || at.line < 1 || at.column < 0 {
			t.Errorf("%q: no place: %v", text, err)
		}
		return 0, 0
	}
	for _, rec := range recs {
		got, err := w.match(rec)
		again, err2 := w.match(rec)
		if got != again || (err == nil) != (err2 == nil) || got && err != nil {
			t.Errorf("%q: %v, %v and then %v, %v", text, got, err, again, err2)
		}
		if err != nil && !strings.Contains(text, "s3cret") && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q shows a value: %v", text, err)
		}
		if got {
			matched++
		}
		if err != nil {
			failed++
		}
	}
	return matched, failed
}

// Run every operator and function with values of every type.
func TestWhenTakesEveryType(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	rec := everything(t)
	names := []string{"missing", "missing.x", "s.x"}
	for name := range rec.New.All() {
		names = append(names, name)
	}
	slices.Sort(names)
	matched, failed, all := 0, 0, 0
	try := func(format string, args ...any) {
		m, f := holds(t, fmt.Sprintf(format, args...), rec, &sluice.Record{EventName: sluice.Remove})
		matched, failed, all = matched+m, failed+f, all+1
	}
	for _, a := range names {
		for _, b := range names {
			for _, op := range []string{"==", "!=", "<", "<=", ">", ">=", "in", "not in", "contains", "startsWith", "endsWith", "&&", "or", "??"} {
				try("new.%s %s new.%s", a, op, b)
			}
			for _, op := range []string{"+", "-", "*", "/", "%", "**"} {
				try("new.%s %s new.%s == new.s", a, op, b)
			}
			try("new.%s[new.%s] == 1", a, b)
			try("min(new.%s, new.%s) == 1", a, b)
			try("indexOf(new.%s, new.%s) == 1", a, b)
		}
		for _, f := range []string{"all", "any", "none", "one", "count", "filter", "map", "find"} {
			try("new.%s != nil && %s(new.%s, # == 1) != nil", a, f, a)
			try("%s(new.%s, .a) == true", f, a)
		}
		for _, f := range []string{"first", "last", "len", "lower", "upper", "trim", "abs", "ceil", "floor", "round", "max"} {
			try("%s(new.%s) == 1", f, a)
		}
		try("!new.%s", a)
		try("-new.%s == 1", a)
		try("new.%s ? true : false", a)
		try("new.%s matches 'a'", a)
		try("new.%s[1:2] == 1", a)
		try("new.%s[-1] == 1", a)
		try("split(new.%s, ',')[0] == 'a'", a)
		try("hasPrefix(new.%s, 'a')", a)
	}
	if matched < 500 || failed < 500 || all < 10_000 {
		t.Errorf("%d of %d are true and %d fail: it tries too little", matched, all, failed)
	}
}

func FuzzWhen(f *testing.F) {
	for _, text := range []string{
		`new.s == "x" && old.s != new.s`, `any(new.l, .a > 1)`, `let a = new.n; a * a > 5`, `new["a b"]?.c ?? 3 == 3`, `new.digits - 1 > new.tiny`,
		`split(new.s, "c")[1] == "ret"`, `new.n in [1, 2.5, "a", nil]`, `new.s matches "^s"`, `-9223372036854775808 / -1 == new.n`, `new.n % 0 == 1`,
		`1 << 5`, `{"a": new.s}.a == "x"`, `[new.s][0] contains "x"`, `new | len() > 1`, "new.s == `a\nb`", `not (new.t)`, `filter(new.mixed, # == nil)[0]`, `new.deep.d.d.d.d == nil`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		holds(t, text, everything(t), changed(t), &sluice.Record{EventName: sluice.Insert})
	})
}
