package projection

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

// A redriven record writes the item as it is now, if the route still takes it. An
// item of another type, or that a filter leaves out, has no document.
func TestOutOfTurnAsksTheRoute(t *testing.T) {
	it := func(typ, status string) sluice.Item {
		return item.Of(item.String("id", "7"), item.String("entityType", typ), item.String("status", status), item.String("text", "hello"))
	}
	open := router.When(func(rec *sluice.Record) bool { v, _ := rec.New.Lookup("status"); return v.Str() == "open" })
	modified := router.When(func(rec *sluice.Record) bool { return rec.EventName == sluice.Modify })
	for _, tt := range []struct {
		name    string
		pattern string
		filter  router.Option
		now     sluice.Item
		there   bool
	}{
		{"the same type", "note#*", router.NeedsBoth(), it("note", "open"), true},
		{"another type", "note#*", router.NeedsBoth(), it("secret", "open"), false},
		{"another type of the route", "note#* memo#*", router.NeedsBoth(), it("memo", "open"), true},
		{"any type", "*#*", router.NeedsBoth(), it("secret", "open"), true},
		{"no type", "note#*", router.NeedsBoth(), item.Of(item.String("id", "7")), false},
		{"a filter takes it", "note#*", open, it("note", "open"), true},
		{"a filter leaves it out", "note#*", open, it("note", "closed"), false},
		{"a filter goes by the event", "note#*", modified, it("note", "closed"), true},
		{"a filter compares with the old image", "note#*", router.Changed("status"), it("note", "new"), true},
	} {
		for _, origin := range []sluice.Origin{sluice.Live, sluice.Redriven, sluice.Replayed, sluice.Backfilled} {
			index := streamtest.NewIndex()
			p := must(t, index.Write, Options{Index: "i", ID: "{id}", Version: BySequence(), Current: asItIs(tt.now)})
			r := router.New()
			r.Handle(tt.pattern+" note#SNAPSHOT", p.Handle, tt.filter, router.Redrive())
			rec := at(1, sluice.Modify, it("note", "new"), it("note", "open"))
			if origin == sluice.Live {
				rec.Created = time.Now().Add(-50 * time.Hour) // an outage was long
			}
			want := tt.there
			if rec.Origin = origin; origin == sluice.Backfilled {
				if strings.HasPrefix(tt.name, "a filter goes") {
					continue // it takes no item of a backfill
				}
				// A document of an earlier change, which another one left there.
				if err := p.Handle(t.Context(), at(0, sluice.Insert, sluice.Item{}, note("old"))); err != nil {
					t.Fatal(err)
				}
				rec = scanned(it("note", "open"))
			}
			if err := r.Dispatch(context.Background(), rec); err != nil {
				t.Fatal(err)
			}
			docs := index.Docs("i")
			there := len(docs) == 1 && strings.Contains(string(docs[0].Source), string(`"id":"7","entityType"`))
			if there != want {
				t.Errorf("%s, %v: %+v, want a document of the item: %v", tt.name, origin, docs, want)
			}
		}
	}
}
