package meadowlark

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
	"github.com/sluicehq/sluice/item"
)

const courseKey = `{"NaturalKey":"NK#courseCode=1234#educationOrganizationReference.educationOrganizationId=122","Type":"TYPE#Ed-Fi#3.3.1-b#Course"}`

// A school that is deleted past the writer: one alert, which names the course.
func TestSchoolIsDeletedPastTheWriter(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, Fixtures()...)
		w.run(t, time.Hour)
		w.delete(t, Fixtures()[school])
		removed := w.Records()[0]
		w.Replay(removed)
		w.run(t, time.Hour)
		alert := `{"kind":"integrity.dangling","id":"` + schoolID + `","type":"` + School + `","foreignKeys":[` + courseKey + `],"dedupeKey":"` + schoolID + `#1638802062000000"}`
		if diff := cmp.Diff([]string{alert}, w.told()); diff != "" {
			t.Error(diff)
		}
		if w.doc(schoolIndex, schoolID).Found {
			t.Error("the document is there")
		}
		// Its guard is gone; as an organization somebody refers to it.
		keep := Fixtures()
		keep = append(keep[:guard:guard], keep[assign:]...)
		w.holds(t, keep...)

		// Delivered once more, it says the same; but not when the school is back.
		w.Replay(removed)
		w.run(t, time.Hour)
		if diff := cmp.Diff([]string{alert}, w.told()); diff != "" {
			t.Error(diff)
		}
		w.put(t, renamed("Back", 1638802062000009))
		w.run(t, time.Hour)
		w.Replay(removed)
		w.run(t, time.Hour)
		if got := w.told(); got != nil {
			t.Error(got)
		}
		if d := w.doc(schoolIndex, schoolID); d.Version != 1638802062000009 {
			t.Errorf("%+v", d)
		}
	})
}

// The count that a school has left behind goes with the last reference.
func TestSchoolAndThenCourseAreDeletedPastTheWriter(t *testing.T) {
	for _, twice := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			w.Twice = twice
			fx := Fixtures()
			w.put(t, fx...)
			w.run(t, time.Hour)
			for _, it := range []sluice.Item{fx[school], fx[course]} {
				w.delete(t, it)
				w.run(t, time.Hour)
			}
			w.holds(t, fx[levels], fx[other])
		})
	}
}

// A course that is deleted past the writer leaves nothing behind.
func TestCourseIsDeletedPastTheWriter(t *testing.T) {
	for _, twice := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			w.put(t, Fixtures()...)
			w.run(t, time.Hour)
			w.Twice = twice
			w.delete(t, Fixtures()[course])
			w.run(t, time.Hour)
			fx := Fixtures()
			w.holds(t, fx[levels], fx[other], fx[guard], fx[school], fx[assign].With(item.Number("refCount", "0")))
			if got := w.told(); got != nil {
				t.Error(got)
			}
		})
	}
}

// A clean-up that dies at any write, before or after it took effect, is done
// again.
func TestCleanUpDies(t *testing.T) {
	for n := 1; ; n++ {
		writes := 0
		inWorld(t, func(t *testing.T, w *world) {
			w.put(t, Fixtures()...)
			w.run(t, time.Hour)
			w.delete(t, Fixtures()[course])
			w.Fault = func(bool, []dynamo.Op) error {
				if writes++; writes == n {
					return errors.New("no answer")
				}
				return nil
			}
			w.run(t, time.Hour)
			fx := Fixtures()
			w.holds(t, fx[levels], fx[other], fx[guard], fx[school], fx[assign].With(item.Number("refCount", "0")))
		})
		if writes < n {
			if n < 3 {
				t.Errorf("only %d places to die at", n-1)
			}
			return
		}
	}
}

func TestReferenceWithoutATarget(t *testing.T) {
	alert := `{"kind":"integrity.dangling","id":"` + schoolID + `","type":"` + EducationOrganization + `","foreignKeys":[` + courseKey + `],"dedupeKey":"` + courseID + "#" + schoolID + `"}`
	for _, tt := range []struct {
		name string
		then func(t *testing.T, w *world) // half a minute later
		want []string
	}{
		{"it stays away", func(*testing.T, *world) {}, []string{alert}},
		{"it comes", func(t *testing.T, w *world) { w.put(t, Fixtures()[assign]) }, nil},
		{"the reference goes", func(t *testing.T, w *world) { w.delete(t, Fixtures()[fref]) }, nil},
		{"nobody knows whose it is", func(t *testing.T, w *world) { w.delete(t, Fixtures()[tref]) }, []string{
			`{"kind":"integrity.dangling","id":"` + schoolID + `","type":"` + EducationOrganization + `","foreignKeys":[],"dedupeKey":"` + courseID + "#" + schoolID + `"}`,
		}},
	} {
		for _, twice := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					begun := w.Now()
					w.put(t, Fixtures()[course], Fixtures()[fref], Fixtures()[tref])
					recs := w.Records()
					for i := range recs {
						recs[i].Created = begun.Add(-10 * time.Second)
					}
					w.Replay(recs...)
					w.Twice = twice
					w.run(t, 30*time.Second)
					if got := w.told(); got != nil {
						t.Errorf("too early: %v", got)
					}
					tt.then(t, w)
					w.run(t, 19*time.Second)
					if got := w.told(); got != nil {
						t.Errorf("too early: %v", got)
					}
					w.run(t, 2*time.Second)
					want := tt.want
					for twice && len(want) == 1 && len(want) < 4 { // two records, and each message twice
						want = append(want, want[0], want[0], want[0])
					}
					if diff := cmp.Diff(want, w.told()); diff != "" {
						t.Error(diff)
					}
					bodies := map[string]bool{}
					for _, m := range w.Sent {
						bodies[m.Body] = true
					}
					if len(bodies) != 1 {
						t.Errorf("checks: %v", bodies)
					}
				})
			})
		}
	}
}

func TestReferencesThatCannotBeLookedAt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, Fixtures()[fref].Only("pk", "sk"))
		m := sluice.Message{ID: "m1", Body: `{"kind":"integrity.reference","key":{"pk":{"S":"TYPE#a"},"sk":{"S":"ID#x"}},"notBefore":"2021-12-06T16:00:00Z"}`}
		w.Replay(*m.Record("arn:aws:sqs:eu-west-1:123456789012:checks"))
		if err := w.Run(t.Context(), w.router.Dispatch, w.Now()); err != nil {
			t.Fatal(err)
		}
		if len(w.Parked) != 2 {
			t.Error(w.Parked)
		}
	})
}

// holds compares the table with items.
func (w *world) holds(t *testing.T, want ...sluice.Item) {
	t.Helper()
	raw := func(items []sluice.Item) map[string]string {
		m := map[string]string{}
		for _, it := range items {
			m[string(it.Only("pk", "sk").Raw())] = string(it.AppendJSON(nil, item.JSON{SortedKeys: true}))
		}
		return m
	}
	if diff := cmp.Diff(raw(want), raw(w.Items(writer.DefaultTable))); diff != "" {
		t.Error(diff)
	}
}
