package reflex

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// An incident that is malformed says so itself, and ends the searches that it has.
func TestMalformed(t *testing.T) {
	good := Fixtures()[0]
	with := func(old, new string) sluice.Item {
		return streamtest.Item(strings.Replace(string(good.Raw()), old, new, 1))
	}
	for name, tt := range map[string]struct {
		it  sluice.Item
		why string
	}{
		"stage beyond the last": {with(`"stage":{"N":"1"}`, `"stage":{"N":"3"}`), "it is at stage 3 of 2"},
		"no contact":            {with(`"contactId":{"S":"89fa8f8"},`, ""), "stage 1: want a contactId, and a limitSeconds that is not negative"},
		"contact is a bool":     {with(`{"S":"89fa8f8"}`, `{"BOOL":true}`), `stage 1: cannot decode attribute "contactId" into string: it is of type BOOL`},
		"stages are a map":      {good.With(item.Map("stages", item.Of(item.String("a", "b")))), "it is at stage 1 of 0"},
		"no time":               {with("2019-12-30T20:00:00Z", "now"), "stageStartedDatetime is no time in RFC 3339, such as 2019-12-30T20:00:00Z"},
		"stage is a text":       {with(`"stage":{"N":"1"}`, `"stage":{"S":"one"}`), `cannot decode attribute "stage" into int64: it is of type S`},
		"no domain":             {good.Without("domainId"), "domainId is missing"},
		"no status":             {good.Without("status"), "status is missing, or no text"},
		"status is a number":    {good.With(item.Number("status", "1")), "status is missing, or no text"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t)
				w.put(t, "reflex", tt.it)
				rec := streamtest.Insert("reflex", tt.it)
				for try := range 2 {
					err := w.handle(t.Context(), &rec)
					if try == 0 && (!sluice.IsPermanent(err) || strings.Contains(err.Error(), "I-1")) {
						t.Fatal(err)
					}
					if try == 1 && fmt.Sprint(err) != "skipped: incident not open" { // a function goes on
						t.Fatal(err)
					}
					it := w.Items("reflex")[0]
					if text(it, "status") != "failed" || text(it, "reason") != tt.why {
						t.Errorf("%s", it.Raw())
					}
				}
				if len(w.found(t)) > 0 || len(w.Sent) > 0 {
					t.Errorf("searches %q, sent %v", w.found(t), w.Sent)
				}
			})
		})
	}

	t.Run("by an edit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newTown(t)
			w.put(t, "reflex", good)
			w.run(t, "20:05:00")
			w.put(t, "reflex", with(`"contactId":{"S":"9d657f8"},`, ""))
			if err := w.Run(t.Context(), w.handle, at("23:00:00")); err != nil {
				t.Fatal(err)
			}
			if it := w.Items("reflex")[0]; text(it, "status") != "failed" || !strings.HasPrefix(text(it, "reason"), "stage 2: ") {
				t.Errorf("%s", it.Raw())
			}
			same(t, "searches", w.found(t), search(1, "canceled"))
			s, _, err := w.searches.Search(t.Context(), "e923fda")
			if err != nil || s.Resolution != "incident failed" || s.Resolved != "2019-12-30T20:10:00Z" {
				t.Errorf("%+v, %v", s, err)
			}
		})
	})
}

// A malformed incident that was mended, and is open again, goes on.
func TestMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		good := Fixtures()[0]
		w.put(t, "reflex", good.With(item.String("stageStartedDatetime", "now")))
		if err := w.Run(t.Context(), w.handle, at("20:01:00")); err != nil || len(w.Parked) != 1 || !strings.HasPrefix(w.incident(), "failed at 1 ") {
			t.Fatal(err, w.Parked, w.incident())
		}
		w.Parked = nil
		w.put(t, "reflex", good)
		w.run(t, "20:11:00")
		is(t, w.incident(), "open at 2 since 2019-12-30T20:10:00Z")
		same(t, "searches", w.found(t), search(1, "active"), search(2, "active"))
	})
}

// A malformed record that comes after the incident's repair, such as a redriven one,
// begins the incident's current stage.
func TestMendedBeforeItsRecordComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.put(t, "reflex", Fixtures()[0])
		rec := streamtest.Insert("reflex", Fixtures()[0].With(item.String("stageStartedDatetime", "now")))
		if err := w.handle(t.Context(), &rec); err != nil {
			t.Fatal(err)
		}
		is(t, w.incident(), "open at 1 since 2019-12-30T20:00:00Z")
		same(t, "searches", w.found(t), search(1, "active"))
	})
}

// An incident that fails has its search canceled. When it is mended, the search of its
// stage begins a new round, unless somebody else has ended it.
func TestMendedAfterItsSearchWasCanceled(t *testing.T) {
	one := streamtest.Item(strings.Replace(string(Fixtures()[0].Raw()), `,{"M":{"contactId":{"S":"9d657f8"},"limitSeconds":{"N":"600"}}}`, "", 1))
	for by, calls := range map[string][]string{
		"":    {"20:00:00 e923fda#0 89fa8f8", "20:11:00 e923fda#0@1 89fa8f8", "20:31:00 e923fda#1@1 89fa8f8"},
		"ada": {"20:00:00 e923fda#0 89fa8f8"},
	} {
		for _, twice := range []bool{false, true} {
			t.Run(fmt.Sprint(by, " twice ", twice), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newTown(t)
					w.Twice = twice
					w.put(t, "reflex", one)
					w.run(t, "20:05:00")
					if by != "" {
						if ok, err := w.searches.Cancel(t.Context(), "e923fda", manhunt.Ending{By: by}); !ok || err != nil {
							t.Fatal(ok, err)
						}
					}
					w.put(t, "reflex", one.With(item.String("stageStartedDatetime", "now")))
					if err := w.Run(t.Context(), w.handle, at("20:11:00")); err != nil || !strings.HasPrefix(w.incident(), "failed at 1 ") {
						t.Fatal(err, w.incident())
					}
					same(t, "searches", w.found(t), search(1, "canceled"))
					w.Parked = nil
					w.put(t, "reflex", one.With(item.String("stageStartedDatetime", "2019-12-30T20:50:00Z")))
					w.run(t, "20:50:00")
					same(t, "calls", w.calls, calls...)
					w.run(t, "23:00:00")
					is(t, w.incident(), "exhausted at 1 since 2019-12-30T20:50:00Z")
				})
			})
		}
	}
}

// A stage that is malformed keeps nobody from being called before its turn. Then the
// incident fails, and says why.
func TestLaterStageIsMalformed(t *testing.T) {
	for name, tt := range map[string]struct{ old, new, why string }{
		"no contact":        {`"contactId":{"S":"9d657f8"},`, "", "stage 2: want a contactId, and a limitSeconds that is not negative"},
		"contact is a bool": {`{"S":"9d657f8"}`, `{"BOOL":true}`, `stage 2: cannot decode attribute "contactId" into string: it is of type BOOL`},
		"a text":            {`{"M":{"contactId":{"S":"9d657f8"},"limitSeconds":{"N":"600"}}}`, `{"S":"9d657f8"}`, "stage 2: cannot decode "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t)
				w.put(t, "reflex", streamtest.Item(strings.Replace(string(Fixtures()[0].Raw()), tt.old, tt.new, 1)))
				w.run(t, "20:09:59")
				same(t, "calls", w.calls, "20:00:00 e923fda#0 89fa8f8")
				is(t, w.incident(), "open at 1 since 2019-12-30T20:00:00Z")
				if err := w.Run(t.Context(), w.handle, at("23:00:00")); err != nil || len(w.Parked) != 1 {
					t.Fatal(err, w.Parked)
				}
				if it := w.Items("reflex")[0]; text(it, "status") != "failed" || !strings.HasPrefix(text(it, "reason"), tt.why) {
					t.Errorf("%s", it.Raw())
				}
				same(t, "calls", w.calls, "20:00:00 e923fda#0 89fa8f8")
				same(t, "searches", w.found(t), search(1, "canceled"))
			})
		})
	}
}
