package deadletter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/state"
)

func gap(shard string, after int) *sluice.Gap {
	return &sluice.Gap{
		Table: "test", StreamARN: recordtest.ARN, ShardID: shard, After: recordtest.Sequence(after),
		Found: time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC),
	}
}

func parkGap(t *testing.T, b *Box, g *sluice.Gap) string {
	t.Helper()
	if err := b.ParkGap(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	return gapID(g)
}

func gaps(t *testing.T, b *Box) (names []string) {
	t.Helper()
	all, err := b.Gaps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range all {
		names = append(names, fmt.Sprintf("%s/%d/%d", g.ShardID, recordtest.Nth(g.After), recordtest.Nth(g.Before)))
	}
	return names
}

// A gap is a dead letter like others. It is kept once, however often it is
// reported, until somebody deletes it.
func TestGaps(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	park(t, b, record("a", 10), "r")
	one := gap("s1", 9)
	parkGap(t, b, one)
	for i := range page + 5 { // more than are read at a time
		parkGap(t, b, gap(fmt.Sprintf("t%03d", i), 0))
	}
	filled := *one
	filled.Before = recordtest.Sequence(12)
	between := sluice.Gap{Table: "test", StreamARN: recordtest.ARN, Next: "next", Found: one.Found}
	if e, err := b.Get(t.Context(), parkGap(t, b, &between)); err != nil || *e.Gap != between || !strings.Contains(e.Last.Error, "was replaced by next") {
		t.Errorf("%+v, %v", e, err)
	}
	if err := b.AcknowledgeGap(t.Context(), &between); err != nil {
		t.Error(err)
	}
	id := parkGap(t, b, &filled)
	if got := gaps(t, b); len(got) != page+6 || got[len(got)-1] != "s1/9/12" {
		t.Fatalf("%d gaps, the last is %q", len(got), got[len(got)-1])
	}
	e, err := b.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&filled, e.Gap); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if e.Table != "test" || e.StreamARN != recordtest.ARN || e.ShardID != "s1" || e.Sequence != one.After || !strings.Contains(e.Last.Error, fmt.Sprintf("records after %s and before %s were trimmed", one.After, filled.Before)) || !e.ParkedAt.Equal(one.Found) {
		t.Errorf("the entry: %+v", e)
	}
	if e.Record().Err() == nil {
		t.Error("a gap has a record")
	}
	other := NewBox(b.letters, "other")
	if got := gaps(t, other); got != nil {
		t.Errorf("another application has gaps: %v", got)
	}
	if err := b.AcknowledgeGap(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), gapID(gap("t000", 0))); err != nil {
		t.Fatal(err)
	}
	if got := gaps(t, b); len(got) != page+4 || slices.Contains(got, "s1/9/12") || slices.Contains(got, "t000/0/0") {
		t.Errorf("acknowledged gaps are still there: %v", got)
	}
	if got := list(t, b); len(got) != page+5 || got[0] != "test/10/r" {
		t.Errorf("entries: %v", got)
	}
}

// listings notes where each listing of the letters began.
type listings struct {
	*state.Memory
	after []string
}

func (l *listings) ListLetters(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	l.after = append(l.after, after)
	return l.Memory.ListLetters(ctx, app, after, limit)
}

// However many records are parked, gaps are found without reading them.
func TestGapsAreFoundAtOnce(t *testing.T) {
	l := &listings{Memory: state.NewMemory()}
	b := NewBox(l, "app")
	for i := range 3 * page {
		park(t, b, record("a", i+1), "r")
	}
	parkGap(t, b, gap("s", 1))
	if got := gaps(t, b); len(got) != 1 || len(l.after) != 2 || l.after[0] != gapPrefix {
		t.Errorf("gaps %v by listings after %q", got, l.after)
	}
}

func TestGapIDs(t *testing.T) {
	base := gap("s", 9)
	same := gap("s", 9)
	same.Before, same.Gone, same.Found, same.Table = recordtest.Sequence(10), true, time.Now(), ""
	if gapID(base) != gapID(same) {
		t.Error("two reports of one gap have two ids")
	}
	later, between := gap("s", 9), gap("s", 9)
	later.StreamARN, between.Next = "another", "another"
	for _, g := range []*sluice.Gap{gap("t", 9), gap("s", 0), gap("s", 10), later, between} {
		if gapID(base) == gapID(g) {
			t.Errorf("%+v has the id of another gap", g)
		}
	}
}

func TestUnreadableGapsAreNamed(t *testing.T) {
	m := state.NewMemory()
	b := NewBox(m, "app")
	parkGap(t, b, gap("s", 1))
	for id, data := range map[string]string{
		"gap-newer": `{"version":4,"id":"gap-newer"}`,
		"gap-odd":   `{"version":2,"kind":"hole","id":"gap-odd","origin":"live"}`,
		"gap-empty": `{"version":2,"kind":"gap","id":"gap-empty","origin":"live"}`,
		"zz":        `{"version":9,"id":"zz"}`, // none of ours
	} {
		if err := m.PutLetter(t.Context(), "app", id, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := b.Gaps(t.Context())
	if len(got) != 1 || got[0].ShardID != "s" || err == nil {
		t.Fatalf("%v, %v", got, err)
	}
	for _, part := range []string{"gap-newer is of version 4", `gap-odd: kind "hole" is unknown`, `gap-empty: kind "gap"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	closed, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Gaps(closed); !errors.Is(err, context.Canceled) {
		t.Errorf("Gaps of a store that fails: %v", err)
	}
}

// A program of version 1 refuses a gap, rather than taking it for a record,
// and still reads every record.
func TestGapsRaiseTheVersion(t *testing.T) {
	e := gapEntry(gap("s", 1))
	data, err := e.Append(nil)
	if err != nil || !bytes.HasPrefix(data, []byte(`{"version":2,"kind":"gap",`)) {
		t.Errorf("%s, %v", data, err)
	}
	rec := newEntry(record("a", 1), failure("r"), time.Now())
	data, err = rec.Append(nil)
	if err != nil || !bytes.HasPrefix(data, []byte(`{"version":1,"id":`)) {
		t.Errorf("%s, %v", data, err)
	}
}

// A gap holds no item and cannot be redriven, which is said, not tried.
func TestGapIsNoRecord(t *testing.T) {
	m := state.NewMemory()
	b := NewBox(m, "app")
	id := parkGap(t, b, gap("s", 1))
	if held, err := NewBox(m, "app").Holds(t.Context(), record("a", 20), ""); held || err != nil {
		t.Errorf("Holds: %v, %v", held, err)
	}
	var c calls
	routes := anyMatcher{{Name: "r", Handler: c.handle, Redrive: true}}
	err := b.Redrive(t.Context(), routes, id, How{})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), id) || !strings.Contains(err.Error(), "it is a gap") || !strings.Contains(err.Error(), "shard s: records after "+string(recordtest.Sequence(1))+" were trimmed") {
		t.Errorf("Redrive: %v", err)
	}
	park(t, b, record("a", 10), "r")
	if r, err := b.RedriveAll(t.Context(), routes, Filter{Route: "r"}, How{}); r != (Report{Done: 1}) || err != nil {
		t.Errorf("RedriveAll of r: %+v, %v", r, err)
	}
	park(t, b, record("a", 10), "r")
	if r, err := b.RedriveAll(t.Context(), routes, Filter{}, How{}); r != (Report{Done: 1, Gaps: 1}) || err != nil {
		t.Errorf("RedriveAll: %+v, %v", r, err)
	}
	if got := gaps(t, b); len(got) != 1 || len(c.got) != 2 {
		t.Errorf("gaps %v, calls %v", got, c.got)
	}
}

func TestSenderSendsGaps(t *testing.T) {
	var sent []byte
	s := Sender(func(_ context.Context, e Entry, data []byte) error {
		sent = data
		return nil
	})
	if err := s.ParkGap(t.Context(), gap("s", 1)); err != nil {
		t.Fatal(err)
	}
	if e, err := Parse(sent); err != nil || e.Gap == nil || e.Gap.After != recordtest.Sequence(1) {
		t.Errorf("sent %s: %v", sent, err)
	}
}
