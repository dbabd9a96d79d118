package reflex

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/streamtest"
)

func (w *town) remove(t *testing.T) {
	t.Helper()
	if err := w.Write(t.Context(), dynamo.Delete("reflex", key("I-1"))); err != nil {
		t.Fatal(err)
	}
}

// Removing an incident ends its searches. Nobody is called for it any more.
func TestRemoved(t *testing.T) {
	for when, want := range map[string]int{"20:00:00": 0, "20:05:00": 1, "20:15:00": 2} {
		for _, twice := range []bool{false, true} {
			t.Run(fmt.Sprint(when, " twice ", twice), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newTown(t)
					w.Twice = twice
					w.put(t, "reflex", Fixtures()[0])
					if want > 0 {
						w.run(t, when)
					}
					w.remove(t)
					w.run(t, "23:00:00")
					if len(w.calls) != want || len(w.found(t)) != want || len(w.Items("reflex")) > 0 {
						t.Errorf("calls %q, searches %q, want %d", w.calls, w.found(t), want)
					}
					for n := range want {
						s, _, err := w.searches.Search(t.Context(), SearchID("I-1", int64(n+1)))
						if err != nil || s.Status != manhunt.Canceled || s.Resolution != "incident removed" || s.ResolvedBy != "reflex" || s.Resolved != "2019-12-30T"+when+"Z" {
							t.Errorf("%+v, %v", s, err)
						}
					}
				})
			})
		}
	}
}

// Also searches of stages that are on the list no more are ended, and those of a
// record that lacks the old image.
func TestRemovedAfterEdits(t *testing.T) {
	shorter := func(it sluice.Item) sluice.Item {
		return streamtest.Item(strings.Replace(string(it.Raw()), `,{"M":{"contactId":{"S":"9d657f8"},"limitSeconds":{"N":"600"}}}`, "", 1))
	}
	for _, oldImage := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newTown(t)
			w.put(t, "reflex", Fixtures()[0])
			w.run(t, "20:11:00")
			same(t, "searches", w.found(t), search(1, "active"), search(2, "active"))
			w.put(t, "reflex", shorter(w.Items("reflex")[0]))
			w.run(t, "20:12:00")
			w.remove(t)
			rec := streamtest.Remove("reflex", shorter(Fixtures()[0]))
			if !oldImage {
				rec.Old = sluice.Item{}
			}
			a := &app{d: Deps{Store: w.World, Table: "reflex", Manhunt: "manhunt"}, searches: w.searches}
			if err := a.end(t.Context(), &rec); err != nil {
				t.Fatal(err)
			}
			same(t, "searches", w.found(t), search(1, "canceled"), search(2, "canceled"))
		})
	}
}

// DynamoDB Local has removals without their old image. The key names the removed
// incident: nobody is called for it any more.
func TestRemovedWithoutOldImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.put(t, "reflex", Fixtures()[0])
		w.run(t, "20:05:00")
		inner := w.handle
		w.handle = func(ctx context.Context, rec *sluice.Record) error {
			if rec.EventName == sluice.Remove {
				rec.Old, rec.ViewType = sluice.Item{}, "NEW_AND_OLD_IMAGES"
			}
			return inner(ctx, rec)
		}
		w.remove(t)
		w.run(t, "23:00:00")
		same(t, "searches", w.found(t), search(1, "canceled"))
		same(t, "calls", w.calls, "20:00:00 e923fda#0 89fa8f8")
	})
}

// removes is a store in which the incident is removed right before a search is opened.
type removes struct {
	manhunt.Store
	t *testing.T
	w *town
}

func (s *removes) Write(ctx context.Context, op dynamo.Op) error {
	if op.Kind == dynamo.PutOp && op.Table == "manhunt" {
		s.w.remove(s.t)
	}
	return s.Store.Write(ctx, op)
}

// A removal between the read of an incident and the put of its search leaves no open
// search. That also holds if the process dies after the put and the record comes again.
func TestRemovedMeanwhile(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("dies ", dies), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t)
				w.put(t, "reflex", Fixtures()[0])
				rec := streamtest.Insert("reflex", Fixtures()[0])
				store := &removes{w.World, t, w}
				a := &app{d: Deps{Store: store, Table: "reflex", Manhunt: "manhunt", Send: w.Queue("reflex"), Now: w.Now}, searches: manhunt.NewTable(store, "manhunt")}
				if dies {
					in, _, err := parse(Fixtures()[0])
					if err != nil {
						t.Fatal(err)
					}
					if opened, err := w.searches.Open(t.Context(), in.search()); !opened || err != nil {
						t.Fatal(opened, err)
					}
					w.remove(t)
				}
				if err := a.begin(t.Context(), &rec); fmt.Sprint(err) != "skipped: incident not open" || len(w.Sent) > 0 {
					t.Errorf("%v, sent %v", err, w.Sent)
				}
				same(t, "searches", w.found(t), search(1, "canceled"))
			})
		})
	}
}

// The timer of a stage changes nothing when the incident is gone.
func TestTimerOfARemovedIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.put(t, "reflex", Fixtures()[0])
		w.remove(t)
		time.Sleep(time.Hour)
		m := sluice.Message{ID: "m1", Body: firstTimer}
		if err := w.handle(t.Context(), m.Record("arn:aws:sqs:eu-west-1:123456789012:reflex")); fmt.Sprint(err) != "skipped: stage is over" || len(w.Items("reflex")) > 0 {
			t.Errorf("%v, %v", err, w.Items("reflex"))
		}
	})
}

// TestRemovedSeeds draws when an incident is removed, order, repetitions and faults.
func TestRemovedSeeds(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 13))
			w := newTown(t)
			w.Rand = rng
			if seed%2 == 1 {
				w.Fault = func(bool, []dynamo.Op) error {
					if rng.IntN(10) == 0 {
						return fmt.Errorf("throttled")
					}
					return nil
				}
			}
			fault := w.Fault
			w.Fault = nil
			w.put(t, "reflex", Fixtures()[0])
			w.Fault = fault
			when := at("20:00:00").Add(time.Duration(rng.IntN(1500)) * time.Second)
			w.run(t, when.Format(time.TimeOnly))
			w.Fault = nil
			w.remove(t)
			w.Fault = fault
			inner, ended := w.handle, -1
			w.handle = func(ctx context.Context, rec *sluice.Record) error {
				err := inner(ctx, rec)
				if rec.Table == "reflex" && rec.EventName == sluice.Remove && err == nil && ended < 0 {
					ended = len(w.calls)
				}
				return err
			}
			if err := w.Run(t.Context(), w.handle, at("23:59:59").Add(24*time.Hour)); err != nil || len(w.Parked) > 0 {
				t.Fatal(err, w.Parked)
			}
			for _, s := range w.found(t) {
				if strings.Contains(s, " active ") {
					t.Errorf("seed %d: search %s", seed, s)
				}
			}
			if ended < 0 || len(w.calls) > ended {
				t.Errorf("seed %d: calls %q, %d of them before the end", seed, w.calls, ended)
			}
		})
		if t.Failed() {
			return
		}
	}
}
