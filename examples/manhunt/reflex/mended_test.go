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

// failsAtTwo is an incident whose second stage is malformed, run until it has failed.
func failsAtTwo(t *testing.T, w *town) {
	t.Helper()
	w.put(t, "reflex", streamtest.Item(strings.Replace(string(Fixtures()[0].Raw()), `"contactId":{"S":"9d657f8"},`, "", 1)))
	w.run(t, "20:05:00")
}

// mended is the incident at its second stage, which begins at a time.
func mended(clock string) sluice.Item {
	return Fixtures()[0].With(item.Number("stage", "2"), item.String("stageStartedDatetime", "2019-12-30T"+clock+"Z"))
}

// The searches of all stages that the failure has canceled go on when the incident is
// mended at a later stage, unless somebody else has ended them.
func TestMendedAtALaterStage(t *testing.T) {
	for by, calls := range map[string][]string{
		"":    {"20:00:00 e923fda#0 89fa8f8", "20:30:00 ebd7ce4#0 9d657f8", "20:30:00 e923fda#0@1 89fa8f8"},
		"ada": {"20:00:00 e923fda#0 89fa8f8", "20:30:00 ebd7ce4#0 9d657f8"},
	} {
		for _, twice := range []bool{false, true} {
			t.Run(fmt.Sprint(by, " twice ", twice), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newTown(t)
					w.Twice = twice
					failsAtTwo(t, w)
					if by != "" {
						if ok, err := w.searches.Cancel(t.Context(), "e923fda", manhunt.Ending{By: by}); !ok || err != nil {
							t.Fatal(ok, err)
						}
					}
					if err := w.Run(t.Context(), w.handle, at("20:30:00")); err != nil || !strings.HasPrefix(w.incident(), "failed at 2 ") {
						t.Fatal(err, w.incident())
					}
					same(t, "searches", w.found(t), search(1, "canceled"))
					w.Parked = nil
					w.put(t, "reflex", mended("20:30:00"))
					w.run(t, "20:31:00")
					same(t, "calls", w.calls, calls...)
					if by == "" { // the answer to the earlier stage ends all
						if ok, err := w.searches.Answer(t.Context(), "e923fda", 0, "yes"); !ok || err != nil {
							t.Fatal(ok, err)
						}
						w.run(t, "23:00:00")
						is(t, w.incident(), "acknowledged at 2 since 2019-12-30T20:30:00Z")
						same(t, "calls", w.calls, calls...)
					}
				})
			})
		}
	}
}

// An incident that is closed while the record of its mending is handled, as from the
// dead letters, leaves no search active.
func TestClosedWhileMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		failsAtTwo(t, w)
		if err := w.Run(t.Context(), w.handle, at("20:30:00")); err != nil {
			t.Fatal(err)
		}
		rec := streamtest.Modify("reflex", w.Items("reflex")[0], mended("20:30:00"))
		w.put(t, "reflex", mended("20:30:00"))
		store := &closes{World: w.World, closed: mended("20:30:00").With(item.String("status", "closed"))}
		a := &app{d: Deps{Store: store, Table: "reflex", Manhunt: "manhunt", Send: w.Queue("reflex"), Now: w.Now}, searches: manhunt.NewTable(store, "manhunt")}
		if err := a.begin(t.Context(), &rec); fmt.Sprint(err) != "skipped: incident not open" {
			t.Error(err)
		}
		same(t, "searches", w.found(t), search(1, "canceled"), strings.Replace(search(2, "canceled"), "20:10:00", "20:30:00", 1))
	})
}

// An answer to a search with a malformed round acknowledges its incident all the same.
// One without readable metadata is a dead letter: nobody knows its incident.
func TestAnswerToAMalformedSearch(t *testing.T) {
	for name, tt := range map[string]struct {
		bad      item.Attribute
		incident string
		err      string
	}{
		"round":    {item.String("round", "x"), "acknowledged", "<nil>"},
		"metadata": {item.String("metadata", "x"), "open", "metadata: it is of type S"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t)
				w.put(t, "reflex", Fixtures()[0])
				w.run(t, "20:05:00")
				it, err := w.Get(t.Context(), "manhunt", manhunt.SearchKey("e923fda"))
				if err != nil {
					t.Fatal(err)
				}
				w.put(t, "manhunt", it.With(tt.bad, item.String("status", manhunt.Successful)))
				m := sluice.Message{ID: "m1", Body: `{"kind":"manhunt.resolved","searchId":"e923fda","from":"active","to":"successful"}`}
				err = w.handle(t.Context(), m.Record("arn:aws:sqs:eu-west-1:123456789012:reflex"))
				if sluice.IsPermanent(err) != (tt.err != "<nil>") || !strings.HasSuffix(fmt.Sprint(err), tt.err) || text(w.Items("reflex")[0], "status") != tt.incident {
					t.Errorf("%v, %s", err, w.incident())
				}
			})
		})
	}
}
