package projection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docrules"
	"github.com/sluicehq/sluice/internal/docversion"
	"github.com/sluicehq/sluice/streamtest"
)

// Sequence numbers that AWS wrote, as people published them, in their order.
var published = []sluice.Sequence{
	"67000000000049711534276",      // 2019, us-east-1
	"67600004285332514440945",      // 2025, eu-south-1
	"89300000000054786958328",      // 2020, us-west-2, of a stream five minutes old
	"42600004062755084192341",      // 2024, ap-south-1, fourteen minutes
	"28902000000000058232616929",   // 2023, eu-west-1
	"28856700000818875059017386",   // 2025, eu-central-1, six days
	"977119800000398701107540001",  // 2025, us-east-1, seven hours
	"8935985800002395190001559217", // 2024, eu-west-1, nineteen months
}

func streamOf(label string) string {
	return "arn:aws:dynamodb:eu-west-1:111122223333:table/t/stream/" + label
}

func fenceOf(t *testing.T, label string, number sluice.Sequence) fence {
	t.Helper()
	at, err := BySequence().of(&sluice.Record{StreamARN: streamOf(label), Sequence: number})
	if err != nil || at.kind != document.Exact {
		t.Fatal(number, at, err)
	}
	return at
}

// A later sequence number is greater and never gives a lower version. Versions
// leave room for the tie bits.
func TestVersionsFollowTheSequence(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	number := func() sluice.Sequence {
		switch r.IntN(4) {
		case 0:
			return published[r.IntN(len(published))]
		case 1: // close to another
			s := []byte(published[r.IntN(len(published))])
			s[len(s)-1-r.IntN(len(s)-1)] = '0' + byte(r.IntN(10))
			return sluice.Sequence(s)
		}
		s := make([]byte, 1+r.IntN(40))
		for i := range s {
			s[i] = '0' + byte(r.IntN(10))
		}
		return sluice.Sequence(s)
	}
	labels := []string{"2024-11-02T09:12:33.123", "2024-11-02T09:12:34.001", "2024-11-03T00:00:00.000", "2025-01-01T00:00:00.000", "2026-01-01T00:00:00.123456"}
	for range 20_000 {
		i, j, a, b := r.IntN(len(labels)), r.IntN(len(labels)), number(), number()
		x, y := fenceOf(t, labels[i], a), fenceOf(t, labels[j], b)
		order := a.Compare(b)
		if i != j {
			order = i - j
		}
		if a.Compare(b) == 0 && i == j {
			order = 0
		}
		if (order < 0) != (x.sequence < y.sequence) || order < 0 && x.version > y.version || order == 0 && x != y {
			t.Fatalf("%s %s: %+v\n%s %s: %+v", labels[i], a, x, labels[j], b, y)
		}
		if got := docversion.Least(x.sequence); got != x.version {
			t.Fatalf("%s: %d, want %d", x.sequence, got, x.version)
		}
		if x.version < docversion.Backfilled || x.version&(1<<docrules.TieBits-1) != 0 || x.sequence <= docversion.BeforeAll {
			t.Fatalf("%s %s: %+v", labels[i], a, x)
		}
	}
	for i := 1; i < len(published); i++ {
		if a, b := fenceOf(t, labels[0], published[i-1]), fenceOf(t, labels[0], published[i]); published[i-1].Compare(published[i]) < 0 && a.version >= b.version {
			t.Errorf("%s and %s have the versions %d and %d", published[i-1], published[i], a.version, b.version)
		}
	}
}

// A new stream's numbers begin again. Its changes are later than those of the stream
// before.
func TestANewStreamComesLater(t *testing.T) {
	old := fenceOf(t, "2024-11-02T09:12:33.123", "9999999999999999999999999999999999999999")
	for _, label := range []string{"2024-11-02T09:12:33.124", "2024-11-02T09:12:34.000", "2100-01-01T00:00:00.000"} {
		if at := fenceOf(t, label, "1"); at.sequence <= old.sequence {
			t.Errorf("%s: %s after %s", label, at.sequence, old.sequence)
		}
	}
	if at := fenceOf(t, "2024-11-02T09:12:34.000", "1"); at.version <= old.version {
		t.Errorf("version %d after %d", at.version, old.version)
	}
}

func TestRecordsWithoutAPlace(t *testing.T) {
	for _, tt := range []struct {
		arn    string
		number sluice.Sequence
		want   string
	}{
		{streamOf("2024-11-02T09:12:33.123"), "", `the sequence number ""`},
		{streamOf("2024-11-02T09:12:33.123"), "12x", `the sequence number "12x"`},
		{streamOf("2024-11-02T09:12:33.123"), sluice.Sequence(strings.Repeat("1", 41)), "want 1 to 40 digits"},
		{streamOf("latest"), "1", "goes by the time at its end"},
		{"", "1", "goes by the time at its end"},
	} {
		if _, err := BySequence().of(&sluice.Record{StreamARN: tt.arn, Sequence: tt.number}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v", tt.arn, tt.number, err)
		}
	}
}

// A document says which change it shows, and a tombstone when that was.
func TestMarks(t *testing.T) {
	p := must(t, nil, Options{Index: "i", ID: "{pk}", Version: BySequence()})
	stream := streamtest.WithSequence("977119800000398701107540001")
	put := streamtest.Insert("t", map[string]any{"pk": "a", "sluice": "the item's own"}, stream)
	gone := streamtest.Remove("t", map[string]any{"pk": "a"}, stream)
	sequence := fmt.Sprintf("20240101T000000.000-%040s", "977119800000398701107540001")
	for _, tt := range []struct {
		rec  *sluice.Record
		want string
	}{
		{&put, `{"pk":"a","sluice":{"sequence":"` + sequence + `"}}`},
		{&gone, `{"sluice":{"sequence":"` + sequence + `","deleted":"` + gone.Created.UTC().Format("2006-01-02T15:04:05Z") + `"}}`},
	} {
		ops, err := p.Project(tt.rec)
		if err != nil || len(ops) != 1 || string(ops[0].Body) != tt.want || ops[0].Action != document.Put {
			t.Errorf("%+v, %v\n%s, want\n%s", ops, err, ops[0].Body, tt.want)
			continue
		}
		if mark, err := (document.Doc{Found: true, Source: ops[0].Body}).Mark(ops[0].MarkField); err != nil || mark.Sequence != ops[0].Sequence {
			t.Errorf("%+v, %v", mark, err)
		}
	}
}

// A record that comes out of its turn has the index show the item as it is now,
// at the record's place among the changes; no document is left where it was.
func TestOutOfTurn(t *testing.T) {
	state := func(kind string, n int) map[string]any { return map[string]any{"pk": "a", "kind": kind, "n": n} }
	moved := streamtest.Modify("t", state("x", 1), state("y", 2))
	removed := streamtest.Remove("t", state("x", 1))
	snapshot := streamtest.Snapshot("t", state("y", 2))
	snapshot.Sequence, snapshot.StreamARN = moved.Sequence, moved.StreamARN
	item := func(kind string, n int) sluice.Item { rec := streamtest.Insert("t", state(kind, n)); return rec.New }
	for _, tt := range []struct {
		name string
		rec  sluice.Record
		now  sluice.Item
		want string
	}{
		{"as it was", moved, item("y", 2), "put y/a 2, gone x/a"},
		{"changed since", moved, item("y", 7), "put y/a 7, gone x/a"},
		{"moved since", moved, item("z", 7), "put z/a 7, gone y/a, gone x/a"},
		{"moved back", moved, item("x", 7), "put x/a 7, gone y/a"},
		{"deleted since", moved, sluice.Item{}, "gone y/a, gone x/a"},
		{"made again", removed, item("x", 7), "put x/a 7"},
		{"still deleted", removed, sluice.Item{}, "gone x/a"},
		{"an item in its place", snapshot, item("z", 7), "put z/a 7, gone y/a"},
	} {
		for _, origin := range []sluice.Origin{sluice.Redriven, sluice.Replayed} {
			var did []string
			p := must(t, func(_ context.Context, op document.Op) error {
				mark, err := (document.Doc{Found: true, Source: op.Body}).Mark("sluice")
				at, _ := BySequence().of(&tt.rec)
				if err != nil || mark.Sequence != at.sequence || op.Version != at.version || op.Sequence != at.sequence || op.Fence != document.Exact {
					t.Errorf("%s: %+v, %v", tt.name, op, err)
				}
				if mark.Deleted != "" {
					did = append(did, "gone "+op.ID)
					return nil
				}
				var body struct{ N int }
				err = json.Unmarshal(op.Body, &body)
				did = append(did, fmt.Sprintf("put %s %d", op.ID, body.N))
				return err
			}, Options{Index: "i", ID: "{kind}/{pk}", Version: BySequence(), Current: asItIs(tt.now)})
			rec := tt.rec
			rec.Origin = origin
			if err := p.Handle(t.Context(), &rec); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			if got := strings.Join(did, ", "); got != tt.want {
				t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
			}
		}
	}
}

// Each place that a redriven record leaves has a tombstone of its own, also where the
// keys alone say where the document was.
func TestOutOfTurnTombstones(t *testing.T) {
	state := func(kind string) map[string]any { return map[string]any{"pk": "a", "kind": kind} }
	keysOnly := streamtest.Remove("t", state("x"))
	keysOnly.Old = sluice.Item{}
	for _, tt := range []struct {
		id        string
		tombstone []Field
		rec       sluice.Record
		want      string
	}{
		{"{kind}/{pk}", []Field{Copy("was", "kind")}, streamtest.Modify("t", state("x"), state("y")), "y/a y, x/a x"},
		{"{pk}", nil, keysOnly, "a "},
	} {
		var did []string
		p := must(t, func(_ context.Context, op document.Op) error { return nil }, Options{Index: "i", ID: tt.id, Tombstone: tt.tombstone, Version: BySequence()})
		tt.rec.Origin = sluice.Redriven
		ops, err := p.current(t.Context(), p.scratch.Get().(*scratch), &tt.rec)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range ops {
			var body struct{ Was string }
			if err := json.Unmarshal(op.Body, &body); err != nil {
				t.Error(err)
			}
			did = append(did, op.ID+" "+body.Was)
		}
		if got := strings.Join(did, ", "); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// A record without a time leaves a tombstone of now: one without a time would be a
// document, and never be swept.
func TestTombstoneWithoutATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := must(t, nil, Options{Index: "i", ID: "{pk}", Version: BySequence()})
		rec := streamtest.Remove("t", map[string]any{"pk": "a"})
		rec.Created = time.Time{}
		ops, err := p.Project(&rec)
		if err != nil {
			t.Fatal(err)
		}
		mark, err := (document.Doc{Found: true, Source: ops[0].Body}).Mark("sluice")
		if want := time.Now().UTC().Format(time.RFC3339); err != nil || mark.Deleted != want {
			t.Errorf("%s, %v, want %s", ops[0].Body, err, want)
		}
	})
}

// An item that cannot be read is no reason to give its record up.
func TestOutOfTurnWithoutTheTable(t *testing.T) {
	down := errors.New("down")
	p := must(t, streamtest.NewIndex().Write, Options{Index: "i", ID: "{pk}", Version: BySequence(), Current: func(context.Context, *sluice.Record) (sluice.Item, error) {
		return sluice.Item{}, down
	}})
	rec := streamtest.Insert("t", map[string]any{"pk": "a"})
	rec.Origin = sluice.Redriven
	if err := p.Handle(t.Context(), &rec); !errors.Is(err, down) || sluice.IsPermanent(err) {
		t.Error(err)
	}
}
