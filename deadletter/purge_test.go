package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/state"
)

func TestPurge(t *testing.T) {
	m := state.NewMemory()
	b := NewBox(m, "app")
	park(t, b, record("a", 1), "r")
	park(t, b, record("b", 2), "r")
	park(t, b, record("c", 3), "s")
	parkGap(t, b, gap("s", 1))
	if err := m.PutLetter(t.Context(), "app", "zz", []byte(`{"version":9,"id":"zz"}`)); err != nil {
		t.Fatal(err)
	}
	left := func() int {
		letters, err := m.ListLetters(t.Context(), "app", "", 100)
		if err != nil {
			t.Fatal(err)
		}
		return len(letters)
	}
	n, err := b.Purge(t.Context(), Filter{Route: "r"}, true)
	if n != 2 || left() != 5 || !strings.Contains(fmt.Sprint(err), "zz is of version 9") {
		t.Errorf("a dry run: %d of %d, %v", n, left(), err)
	}
	if held, _ := b.Holds(t.Context(), record("a", 9), "r"); held {
		t.Error("Holds tells what it cannot know") // zz cannot be read
	}
	if n, _ := b.Purge(t.Context(), Filter{Route: "r"}, false); n != 2 || left() != 3 {
		t.Errorf("Purge: %d, %d left", n, left())
	}
	if n, _ := b.Purge(t.Context(), Filter{Kind: "record"}, false); n != 1 || left() != 2 {
		t.Errorf("Purge of records: %d, %d left", n, left())
	}
	if n, _ := b.Purge(t.Context(), Filter{}, false); n != 1 || left() != 1 {
		t.Errorf("Purge of all: %d, %d left: what cannot be read must stay", n, left())
	}
}

func TestPurgeFreesItems(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	park(t, b, record("a", 1), "r")
	if held, err := b.Holds(t.Context(), record("a", 9), "r"); !held || err != nil {
		t.Fatalf("%v, %v", held, err)
	}
	if n, err := b.Purge(t.Context(), Filter{}, false); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if held, err := b.Holds(t.Context(), record("a", 9), "r"); held || err != nil {
		t.Errorf("the item is held still: %v, %v", held, err)
	}
}

// whole lets Counts read nothing but the beginnings of letters.
type whole struct {
	*state.Memory
	t    *testing.T
	gets int
}

func (w *whole) ListLetterHeads(ctx context.Context, app, after string, limit, most int) ([]state.Letter, error) {
	letters, err := w.ListLetters(ctx, app, after, limit)
	for i := range letters {
		letters[i].Data = letters[i].Data[:min(most, len(letters[i].Data))]
	}
	return letters, err
}

func (w *whole) GetLetter(ctx context.Context, app, id string) ([]byte, bool, error) {
	w.gets++
	return w.Memory.GetLetter(ctx, app, id)
}

func TestCounts(t *testing.T) {
	fill := func(letters state.Letters) *Box {
		b := NewBox(letters, "app")
		for i := range 3 {
			park(t, b, record("a", i+1), "r")
		}
		park(t, b, record("a", 9), "")
		park(t, b, big(100_000), strings.Repeat("long", 20))
		parkGap(t, b, gap("s", 1))
		if err := letters.PutLetter(t.Context(), "app", "zz", []byte(`{"version":9,"id":"zz","position":{}}`)); err != nil {
			t.Fatal(err)
		}
		return b
	}
	w := &whole{Memory: state.NewMemory(), t: t}
	for name, letters := range map[string]state.Letters{"heads": w, "all": state.NewMemory()} {
		counts, err := fill(letters).Counts(t.Context())
		want := []Count{{"", "orders", "gap", 1}, {"", "test", "record", 1}, {strings.Repeat("long", 20), "test", "record", 1}, {"r", "test", "record", 3}}
		want[0].Table = gap("s", 1).Table
		slices.SortFunc(want, func(a, b Count) int { return strings.Compare(a.Table+a.Route, b.Table+b.Route) })
		slices.SortFunc(counts, func(a, b Count) int { return strings.Compare(a.Table+a.Route, b.Table+b.Route) })
		if fmt.Sprint(counts) != fmt.Sprint(want) || err == nil || !strings.Contains(err.Error(), "zz") {
			t.Errorf("%s: %v, %v; want %v", name, counts, err, want)
		}
	}
	if w.gets != 1 { // zz
		t.Errorf("%d letters were read whole", w.gets)
	}
}

// Earlier changes of an item go first.
func TestRedriveEarlier(t *testing.T) {
	var c calls
	m := anyMatcher{{Name: "r", Handler: c.handle, Redrive: true}, {Name: "s", Handler: c.handle, Redrive: true}}
	b := NewBox(state.NewMemory(), "app")
	one := park(t, b, record("a", 9), "r")
	two := park(t, b, record("a", 1000), "r")
	old := park(t, b, itemOn(earlierARN, "a", 99), "r")
	three := park(t, b, record("a", 2000), "r")
	park(t, b, record("a", 5), "s") // another route's
	park(t, b, record("b", 5), "r") // another item's

	var told []Outcome
	earlier := []string{old, one, two}
	how := How{Told: func(o Outcome) { told = append(told, o) }}
	if err := b.Redrive(t.Context(), m, three, how); err == nil || !strings.Contains(err.Error(), "still parked: "+strings.Join(earlier, ", ")) || c.got != nil {
		t.Fatalf("%v, ran %v", err, c.got)
	}
	if len(told) != 1 || told[0].Result != Waiting || !slices.Equal(told[0].Earlier, earlier) {
		t.Errorf("told %+v", told)
	}
	how.DryRun, how.Earlier, told = true, true, nil
	if err := b.Redrive(t.Context(), m, three, how); err != nil || c.got != nil || len(told) != 4 || told[3].Result != WouldRun || !slices.Equal(told[3].Routes, []string{"r"}) {
		t.Errorf("a dry run: %v, ran %v, told %+v", err, c.got, told)
	}
	if len(list(t, b)) != 6 {
		t.Errorf("a dry run deleted: %v", list(t, b))
	}
	// One that fails ends it.
	c.answer = func(rec *sluice.Record) error {
		if rec.Sequence == recordtest.Sequence(9) {
			return errors.New("still down")
		}
		return nil
	}
	if err := b.Redrive(t.Context(), m, three, How{Earlier: true}); err == nil || !slices.Equal(c.got, []string{"99 redriven", "9 redriven"}) {
		t.Errorf("%v, ran %v", err, c.got)
	}
	c.answer, c.got = nil, nil
	if err := b.Redrive(t.Context(), m, three, How{Earlier: true}); err != nil || !slices.Equal(c.got, []string{"9 redriven", "1000 redriven", "2000 redriven"}) {
		t.Errorf("%v, ran %v", err, c.got)
	}
	if got := list(t, b); len(got) != 2 {
		t.Errorf("left: %v", got)
	}
}

func TestRedriveForced(t *testing.T) {
	var c calls
	m := anyMatcher{{Name: "r", Handler: c.handle, Redrive: true}}
	b := NewBox(state.NewMemory(), "app")
	park(t, b, record("a", 10), "")
	two := park(t, b, record("a", 20), "r")
	if err := b.Redrive(t.Context(), m, two, How{}); err == nil {
		t.Error("one for all routes is no earlier one")
	}
	if r, _ := b.RedriveAll(t.Context(), m, Filter{Route: "r"}, How{}); r != (Report{Waiting: 1}) {
		t.Errorf("%+v", r)
	}
	if r, err := b.RedriveAll(t.Context(), m, Filter{Route: "r"}, How{Force: true, DryRun: true}); r != (Report{WouldRun: 1}) || err != nil || c.got != nil {
		t.Errorf("%+v, %v, ran %v", r, err, c.got)
	}
	if err := b.Redrive(t.Context(), m, two, How{Force: true}); err != nil || !slices.Equal(c.got, []string{"20 redriven"}) {
		t.Errorf("%v, ran %v", err, c.got)
	}
}

// What a filter leaves out holds the later changes of its item.
func TestRedriveFiltered(t *testing.T) {
	var c calls
	m := anyMatcher{{Name: "r", Handler: c.handle, Redrive: true}}
	b := NewBox(state.NewMemory(), "app")
	early := park(t, b, record("a", 10), "r")
	e, err := b.Get(t.Context(), early)
	if err != nil {
		t.Fatal(err)
	}
	e.Last.Error, e.First.Error = "another error", ""
	if err := b.store(t.Context(), &e, label{}); err != nil {
		t.Fatal(err)
	}
	park(t, b, record("a", 20), "r")
	park(t, b, record("a", 30), "r")
	park(t, b, record("b", 31), "r")
	var told []Outcome
	r, err := b.RedriveAll(t.Context(), m, Filter{Error: "first"}, How{Told: func(o Outcome) { told = append(told, o) }})
	if r != (Report{Done: 1, Waiting: 2}) || err != nil || len(c.got) != 1 {
		t.Errorf("%+v, %v, ran %v", r, err, c.got)
	}
	if len(told) != 3 || !slices.ContainsFunc(told, func(o Outcome) bool { return o.Result == Waiting && slices.Contains(o.Earlier, early) }) {
		t.Errorf("told %+v", told)
	}
}
