package deadletter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/state"
)

func record(key string, n int) *sluice.Record {
	rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"` + key + `"}}`, Sequence: recordtest.Sequence(n), Shard: "shard"})
	return &rec
}

// ARNs of other streams of the same table.
var (
	earlierARN = strings.Replace(recordtest.ARN, "2024", "2023", 1)
	laterARN   = strings.Replace(recordtest.ARN, "2024", "2025", 1)
)

func itemOn(arn, key string, n int) *sluice.Record {
	rec := recordtest.New(recordtest.Spec{ARN: arn, Keys: `{"pk":{"S":"` + key + `"}}`, Sequence: recordtest.Sequence(n), Shard: "shard"})
	return &rec
}

func park(t *testing.T, b *Box, rec *sluice.Record, route string) string {
	t.Helper()
	if err := b.Park(t.Context(), rec, failure(route)); err != nil {
		t.Fatal(err)
	}
	return idOf(rec, route)
}

func list(t *testing.T, b *Box) []string {
	t.Helper()
	entries, _, err := b.List(t.Context(), "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprintf("%s/%d/%s", e.Table, recordtest.Nth(e.Sequence), e.Route))
	}
	return got
}

func TestBoxParks(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	rec := record("a", 10)
	one := park(t, b, rec, "r")
	park(t, b, rec, "r") // again, by a restart
	park(t, b, rec, "s")
	park(t, b, record("b", 9), "r")
	if id := b.ID(rec, "r"); id != one {
		t.Errorf("the id is %s, and it is parked as %s", id, one)
	}
	got, want := list(t, b), []string{"test/10/r", "test/10/s", "test/9/r"}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Fatalf("entries: %v, want %v", got, want)
	}
	e, err := b.Get(t.Context(), one)
	if err != nil || e.First.Error != "first <error>" || e.Attempts != 8 || string(e.Raw) != string(rec.Raw()) {
		t.Fatalf("Get: %+v, %v", e, err)
	}
	if err := b.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), one); err != nil {
		t.Fatalf("second Delete: %v", err)
	}
	if _, err := b.Get(t.Context(), one); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), one) {
		t.Fatalf("Get of a deleted one: %v", err)
	}
}

// A record that cannot be decoded is parked whole, with its position.
func TestUndecodableIsParked(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	rec := undecodable(t, `{"eventID":"e","eventName":"INSERT","dynamodb":{"SequenceNumber":"100000000003498069978","Keys":{"pk":{"X":"?"}}}}`)
	f := failure("")
	f.First = rec.Err()
	if err := b.Park(t.Context(), &rec, f); err != nil {
		t.Fatal(err)
	}
	e, err := b.Get(t.Context(), idOf(&rec, ""))
	if err != nil || e.Sequence != "100000000003498069978" || e.StreamARN != recordtest.ARN || e.ShardID != "shard" ||
		!strings.Contains(e.First.Error, "undecodable") || string(e.Raw) != string(rec.Raw()) {
		t.Fatalf("%+v, %v", e, err)
	}
}

func TestListInPages(t *testing.T) {
	m := state.NewMemory()
	b := NewBox(m, "app")
	for i := range 5 {
		park(t, b, record("a", i+1), "r")
	}
	if err := m.PutLetter(t.Context(), "app", "zz", []byte(`{"version":9,"id":"zz"}`)); err != nil {
		t.Fatal(err)
	}
	var seen []int
	var failed error
	for after := ""; ; {
		entries, last, err := b.List(t.Context(), after, 2)
		failed = errors.Join(failed, err)
		for _, e := range entries {
			seen = append(seen, recordtest.Nth(e.Sequence))
		}
		if last == "" {
			break
		}
		after = last
	}
	if want := []int{1, 2, 3, 4, 5}; !slices.Equal(seen, want) {
		t.Errorf("%v, want %v", seen, want)
	}
	if failed == nil || !strings.Contains(failed.Error(), "dead letter zz is of version 9") {
		t.Errorf("the newer entry is not named: %v", failed)
	}
}

func TestHolds(t *testing.T) {
	m := state.NewMemory()
	b := NewBox(m, "app")
	if held, err := b.Holds(t.Context(), record("a", 20), "r"); held || err != nil {
		t.Fatalf("an empty box: %v, %v", held, err)
	}
	onRoute := park(t, b, record("a", 9), "r")
	forAll := park(t, b, record("b", 10), "")
	otherTable := itemOn(strings.Replace(recordtest.ARN, "table/test", "table/rest", 1), "a", 20)
	check := func(t *testing.T, b *Box, a, all bool) {
		t.Helper()
		for _, tt := range []struct {
			name  string
			rec   *sluice.Record
			route string
			want  bool
		}{
			{"later change, same route", record("a", 20), "r", a},
			{"later by number, not as text", record("a", 10), "r", a},
			{"later change, other route", record("a", 20), "s", false},
			{"the parked record itself", record("a", 9), "r", false},
			{"earlier change", record("a", 8), "r", false},
			{"other item", record("c", 20), "r", false},
			{"later stream, whatever the number", itemOn(laterARN, "a", 5), "r", a},
			{"earlier stream, whatever the number", itemOn(earlierARN, "a", 20), "r", false},
			{"other table", otherTable, "r", false},
			{"parked for all routes", record("b", 20), "r", all},
			{"no item", sluice.DecodeRecord([]byte("?")), "r", false},
		} {
			got, err := b.Holds(t.Context(), tt.rec, tt.route)
			if err != nil || got != tt.want {
				t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
			}
		}
	}
	check(t, b, true, true)
	check(t, NewBox(m, "app"), true, true) // after a restart
	check(t, NewBox(m, "other"), false, false)
	if err := b.Delete(t.Context(), onRoute); err != nil {
		t.Fatal(err)
	}
	check(t, b, false, true)
	if err := b.Delete(t.Context(), forAll); err != nil {
		t.Fatal(err)
	}
	check(t, b, false, false)
	check(t, NewBox(m, "app"), false, false)
}

func TestHoldsRefusesToGuess(t *testing.T) {
	m := state.NewMemory()
	if err := m.PutLetter(t.Context(), "app", "zz", []byte(`{"version":9,"id":"zz"}`)); err != nil {
		t.Fatal(err)
	}
	b := NewBox(m, "app")
	for range 2 {
		if _, err := b.Holds(t.Context(), record("a", 1), "r"); err == nil || !strings.Contains(err.Error(), "zz is of version 9") {
			t.Fatalf("Holds with an entry that cannot be read: %v", err)
		}
	}
	if err := b.Delete(t.Context(), "zz"); err != nil {
		t.Fatal(err)
	}
	if held, err := b.Holds(t.Context(), record("a", 1), "r"); held || err != nil {
		t.Fatalf("Holds = %v, %v", held, err)
	}
}
