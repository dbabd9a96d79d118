package manhunt

import (
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice/effect/dynamo"
)

// A reopened search begins a new round at the first method, from any state of the first
// round.
func TestReopened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, "19:32:15")
		w.put(t, Fixtures()[:attempt]...)
		w.run(t, "19:40:00")
		if ok, err := w.Cancel(t.Context(), "a271244", byAda); !ok || err != nil {
			t.Fatal(ok, err)
		}
		w.run(t, "19:50:00")
		for _, want := range []bool{true, false} {
			if ok, err := w.Reopen(t.Context(), "a271244"); ok != want || err != nil {
				t.Fatal(ok, err)
			}
		}
		if s := w.search(t); s.Resolution+s.ResolvedBy+s.Resolved != "" {
			t.Errorf("reopened: %+v", s)
		}
		w.run(t, "21:00:00")
		same(t, "calls", w.calls, "19:32:15 a271244#0", "19:50:00 a271244#0@1", "20:10:00 a271244#1@1")
		s, attempts, _, err := w.SearchWithAttempts(t.Context(), "a271244")
		if err != nil || len(attempts) != 3 || s.Round != 1 || s.Resolution != noResponse {
			t.Errorf("%+v, %+v, %v", s, attempts, err)
		}
	})
}

// A search that is snoozed calls nobody before the snooze is over, or taken back.
func TestSnoozed(t *testing.T) {
	for name, tt := range map[string]struct {
		back  bool
		calls []string
	}{
		"to its end": {false, []string{"19:32:15 a271244#0", "20:30:00 a271244#1"}},
		"taken back": {true, []string{"19:32:15 a271244#0", "20:00:00 a271244#1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t, "19:32:15")
				w.put(t, Fixtures()[:attempt]...)
				w.run(t, "19:40:00")
				search := dynamo.Update("manhunt", key("a271244", "search"), "SET #until = :until").Name("#until", "snoozedUntil")
				if err := w.Write(t.Context(), search.Value(":until", "2019-12-30T20:30:00Z")); err != nil {
					t.Fatal(err)
				}
				w.run(t, "20:00:00")
				if tt.back {
					if err := w.Write(t.Context(), dynamo.Update("manhunt", key("a271244", "search"), "REMOVE #until").Name("#until", "snoozedUntil")); err != nil {
						t.Fatal(err)
					}
				}
				w.run(t, "23:00:00")
				same(t, "calls", w.calls, tt.calls...)
				if s := w.search(t); s.Resolution != noResponse {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}
