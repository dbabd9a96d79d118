package deadletter

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
)

// detailed is an error that has details.
type detailed struct {
	d   map[string]string
	err error
}

func (d *detailed) Error() string              { return "detailed" }
func (d *detailed) Details() map[string]string { return d.d }
func (d *detailed) Unwrap() error              { return d.err }

func TestDetails(t *testing.T) {
	a, b := map[string]string{"id": "a"}, map[string]string{"id": "b", "reason": "x"}
	for _, tt := range []struct {
		err  error
		want []map[string]string
	}{
		{nil, nil},
		{errors.New("plain"), nil},
		{&detailed{}, nil},
		{&detailed{d: a}, []map[string]string{a}},
		{sluice.Permanent(fmt.Errorf("route: %w", &detailed{d: a})), []map[string]string{a}},
		{errors.Join(errors.New("x"), &detailed{d: a}, sluice.Permanent(&detailed{d: b})), []map[string]string{a, b}},
		{fmt.Errorf("%w and %w", &detailed{d: a, err: &detailed{d: b}}, &detailed{d: a}), []map[string]string{a, b, a}},
		{&sluice.Remaining{Err: &detailed{d: b}}, []map[string]string{b}},
		{&detailed{d: map[string]string{"k": "\xff" + strings.Repeat("x", 5000)}}, []map[string]string{{"k": "\uFFFD" + strings.Repeat("x", 4095) + "…"}}},
	} {
		f := fault(time.Time{}, tt.err)
		if diff := cmp.Diff(tt.want, f.Details); diff != "" {
			t.Errorf("%v: %s", tt.err, diff)
		}
	}
	many := make([]error, 100)
	for i := range many {
		many[i] = &detailed{d: a}
	}
	if n := len(fault(time.Time{}, errors.Join(many...)).Details); n != mostDetails {
		t.Errorf("%d details kept", n)
	}
	if a["id"] != "a" || len(a) != 1 {
		t.Error("the error's own details were changed")
	}
}

// Details are kept, and an entry without them reads as before.
func TestDetailsAreStored(t *testing.T) {
	rec := recordtest.New(recordtest.Spec{})
	f := failure("r")
	f.Last = sluice.Permanent(&detailed{d: map[string]string{"id": "<&>", "status": "400"}})
	want := newEntry(&rec, f, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	data, err := want.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), `"details":[{"id":"<&>","status":"400"}]`) {
		t.Errorf("%s", data)
	}
	if n := strings.Count(string(data), `"details"`); n != 1 {
		t.Errorf("%d faults have details, want that of the last error", n)
	}
	got, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Last, got.Last); diff != "" {
		t.Error(diff)
	}
	old := strings.Replace(string(data), `,"details":[{"id":"<&>","status":"400"}]`, "", 1)
	if got, err := Parse([]byte(old)); err != nil || got.Last.Details != nil || got.Last.Error != "detailed" {
		t.Errorf("%+v %v", got.Last, err)
	}
}
