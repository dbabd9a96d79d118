package router_test

import (
	"context"
	"slices"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

func entity(typ, status string) sluice.Item {
	return item.Of(item.String("id", "1"), item.String("entityType", typ), item.String("status", status))
}

// Explain gives a reason for each route that does not take a record. The others are the
// routes of Match.
func TestExplain(t *testing.T) {
	nothing := func(context.Context, *sluice.Record) error { return nil }
	r := router.New()
	r.Handle("search#MODIFY", nothing, router.Name("changed"), router.Changed("status"))
	r.Handle("search#*", nothing, router.Name("expired"), router.OnlyTTL())
	r.Handle("search#INSERT *#MODIFY", nothing, router.Name("when"), router.When(func(rec *sluice.Record) bool { return rec.New.Exists() }))
	r.Handle("search#SNAPSHOT", nothing, router.Name("snapshot"), router.Redrive())
	r.Handle("*#*", nothing, router.Name("all"))

	open, done := entity("search", "open"), entity("search", "done")
	for _, tt := range []struct {
		name string
		rec  sluice.Record
		want []string // of each route
	}{
		{"status", streamtest.Modify("t", open, done), []string{"takes", "OnlyTTL", "takes", "pattern", "takes"}},
		{"same", streamtest.Modify("t", open, open), []string{"Changed", "OnlyTTL", "takes", "pattern", "takes"}},
		{"insert", streamtest.Insert("t", open), []string{"pattern", "OnlyTTL", "takes", "pattern", "takes"}},
		{"expired", streamtest.Expire("t", open), []string{"pattern", "takes", "pattern", "pattern", "takes"}},
		{"snapshot", streamtest.Snapshot("t", open), []string{"pattern", "pattern", "pattern", "takes", "pattern"}},
		{"other type", streamtest.Insert("t", entity("x", "open")), []string{"pattern", "pattern", "pattern", "pattern", "takes"}},
		{"redriven", streamtest.Insert("t", open, streamtest.WithOrigin(sluice.Redriven)), []string{"pattern", "OnlyTTL", "redriven", "pattern", "redriven"}},
		{"new only", streamtest.Modify("t", open, done, streamtest.WithView(item.NewImage)), []string{"error", "OnlyTTL", "takes", "pattern", "takes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			verdicts, err := r.Explain(&tt.rec)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var takes []*sluice.Route
			for _, v := range verdicts {
				why := v.Filter
				switch {
				case v.Takes:
					why = "takes"
					takes = append(takes, v.Route)
				case v.Pattern:
					why = "pattern"
				case v.Redriven:
					why = "redriven"
				case v.Err != nil:
					why = "error"
				}
				got = append(got, why)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if slices.Contains(got, "error") {
				return // Match refuses all of it
			}
			matched, err := r.Match(nil, &tt.rec)
			if err != nil && tt.rec.Origin != sluice.Redriven {
				t.Fatal(err)
			}
			if !slices.Equal(matched, takes) {
				t.Errorf("Match returns other routes than take the record")
			}
		})
	}
}

func TestTakesMessages(t *testing.T) {
	nothing := func(context.Context, *sluice.Record) error { return nil }
	r := router.New()
	r.Handle("*#*", nothing)
	r.Handle("job#INSERT job#MESSAGE", nothing)
	for route, want := range []bool{false, true} {
		if got := r.TakesMessages(route); got != want {
			t.Errorf("route %d: %v", route, got)
		}
	}
}

func TestType(t *testing.T) {
	r := router.New()
	rec := streamtest.Insert("t", entity("search", "open"))
	if typ, err := r.Type(&rec); typ != "search" || err != nil {
		t.Errorf("%q, %v", typ, err)
	}
	if _, err := r.Type(sluice.DecodeRecord([]byte("{}"))); err == nil {
		t.Error("an undecodable record has a type")
	}
}

// A record for which Match fails takes no route.
func TestExplainFails(t *testing.T) {
	r := router.New()
	r.Handle("search#*", func(context.Context, *sluice.Record) error { return nil })
	keys := streamtest.Modify("t", entity("search", "open"), entity("search", "done"), streamtest.WithView(item.KeysOnly))
	for _, rec := range []*sluice.Record{&keys, sluice.DecodeRecord([]byte("{}"))} {
		if _, err := r.Explain(rec); err == nil {
			t.Errorf("%s is explained", rec.Raw())
		}
		if _, err := r.Match(nil, rec); err == nil {
			t.Errorf("%s is matched", rec.Raw())
		}
	}
}
