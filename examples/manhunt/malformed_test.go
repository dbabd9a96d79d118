package manhunt

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// A search says which methods it passes over, and why, and goes on with the others.
func TestMalformedMethods(t *testing.T) {
	fx := Fixtures()
	text := func(name, value string) sluice.Item { return fx[email].With(item.String(name, value)) }
	number := func(name, value string) sluice.Item { return fx[email].With(item.Number(name, value)) }
	const (
		noOrder  = "order is missing, or no whole number"
		noWait   = "waitSeconds is missing, or no number of seconds from 0"
		disabled = "enabled is missing, or neither true nor false"
	)
	for name, tt := range map[string]struct {
		method sluice.Item
		why    string
	}{
		"good":                {fx[email], ""},
		"disabled":            {text("order", "x").With(item.Bool("enabled", false)), ""},
		"order is a text":     {text("order", "1"), noOrder},
		"order is no integer": {number("order", "1.5"), noOrder},
		"no wait":             {fx[email].Without("waitSeconds"), noWait},
		"wait is negative":    {number("waitSeconds", "-1"), noWait},
		"wait is too long":    {number("waitSeconds", "9223372036854775807"), noWait},
		"enabled is a text":   {text("enabled", "true"), disabled},
		"no enabled":          {fx[email].Without("enabled"), disabled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t, "19:32:15")
				w.Twice = true
				w.put(t, fx[contact], tt.method, fx[call], fx[search])
				w.run(t, "19:55:00")
				want, calls := fmt.Sprint(map[string]string{"538235b": tt.why}), []string{"19:52:14 a271244#0"}
				if tt.why == "" {
					want = "map[]"
				}
				if name == "good" {
					calls = []string{"19:32:15 a271244#0", "19:52:15 a271244#1"}
				}
				if s := w.search(t); fmt.Sprint(s.Malformed) != want || s.Status != Active {
					t.Errorf("%+v", s)
				}
				same(t, "calls", w.calls, calls...)
			})
		})
	}
}

// Later malformed methods are noted beside the earlier ones. A new round begins without
// notes.
func TestMalformedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, "19:32:15")
		fx := Fixtures()
		last := edit(fx[call], "800e613", "900e613", `"order":{"N":"2"}`, `"order":{"N":"3"}`)
		w.put(t, fx[contact], fx[email], fx[call].Without("order"), last, fx[search])
		w.run(t, "19:40:00")
		w.put(t, fx[call], last.Without("waitSeconds"))
		w.run(t, "20:00:00")
		if s := w.search(t); fmt.Sprint(s.Malformed) != "map[800e613:order is missing, or no whole number 900e613:waitSeconds is missing, or no number of seconds from 0]" {
			t.Errorf("%+v", s)
		}
		w.run(t, "21:00:00")
		if ok, err := w.Reopen(t.Context(), "a271244"); !ok || err != nil {
			t.Fatal(ok, err)
		}
		w.run(t, "21:00:01")
		if s := w.search(t); len(s.Malformed) != 1 || s.Malformed["900e613"] == "" {
			t.Errorf("%+v", s)
		}
	})
}

// A search without a good method ends, and says which are malformed.
func TestAllMethodsMalformed(t *testing.T) {
	fx := Fixtures()
	for want, method := range map[string]sluice.Item{
		"bad_steps map[538235b:order is missing, or no whole number]":                   fx[email].Without("order"),
		"no_contact_methods map[538235b:enabled is missing, or neither true nor false]": fx[email].Without("enabled"),
	} {
		db := newDB(fx[contact], method, fx[search])
		sent, err := handle(t, db, inserted(fx[search]), "2019-12-30T19:40:00Z")
		s, _, _ := NewTable(db, "manhunt").Search(t.Context(), "a271244")
		if got := s.Resolution + " " + fmt.Sprint(s.Malformed); got != want || s.Status != Failed || len(sent) > 0 {
			t.Errorf("%s, sent %v, %v; want %s", got, sent, err, want)
		}
	}
}

// A search that is over stays as it is.
func TestMalformedAfterTheEnd(t *testing.T) {
	fx := Fixtures()
	over := ended(fx[search], Canceled, byAda)
	db := newDB(fx[contact], fx[email].Without("order"), over)
	if _, err := handle(t, db, change(fx[attempt], fx[attempted]), "2019-12-30T19:40:00Z"); !sluice.IsSkip(err) {
		t.Error(err)
	}
	if it := searchItem(t, db, "a271244"); !it.Equal(over) {
		t.Errorf("search is now %s", it.Raw())
	}
}

// notes is a store in which another record writes first, once.
type notes struct {
	Store
	first sluice.Item
}

func (s *notes) Write(ctx context.Context, op dynamo.Op) error {
	if first := s.first; first.Exists() {
		s.first = sluice.Item{}
		if err := s.Store.Write(ctx, dynamo.Put("manhunt", first)); err != nil {
			return err
		}
	}
	return s.Store.Write(ctx, op)
}

// If two records note at once, the second keeps the first one's notes.
func TestMalformedNotedAtOnce(t *testing.T) {
	fx := Fixtures()
	db := newDB(fx[contact], fx[email].Without("order"), fx[search])
	other := fx[search].With(item.Map(malformedMethods, item.Of(item.String("800e613", "order is missing"))))
	store := &notes{Store: db, first: other}
	a := &app{d: Deps{Store: store, Table: "manhunt"}, table: NewTable(store, "manhunt")}
	rec := inserted(fx[search])
	if err := a.noteMalformed(t.Context(), &rec); err == nil || sluice.IsPermanent(err) || sluice.IsSkip(err) {
		t.Fatal(err)
	}
	if err := a.noteMalformed(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	s, _, err := a.table.Search(t.Context(), "a271244")
	if err != nil || len(s.Malformed) != 2 || s.Malformed["800e613"] != "order is missing" {
		t.Errorf("%+v, %v", s, err)
	}
}
