package projection

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/document"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

func TestSequenceVersion(t *testing.T) {
	for s, want := range map[sluice.Sequence]int64{
		"000000000000000000001":         1 + 1, // DynamoDB Local
		"000000000000000000123":         123 + 1,
		"0":                             1,
		"100000000000000000001":         1<<35 + 1 + 1,
		"20500000000000000910398":       205<<35 + 910398 + 1,
		"4421584500000000000000910398":  44215845<<35 + 910398 + 1,
		"26843545500000000034359738366": math.MaxInt64,
	} {
		if got, err := sequenceVersion(s); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []sluice.Sequence{
		"", "12x", "26843545500000000034359738367", "26843545600000000000000000000", "100000000034359738368",
		"99999999999999999999", "9999999999999999999999999999999999999999", "49590338271490256608559692538361571095921575989136588898",
	} {
		if got, err := sequenceVersion(s); err == nil {
			t.Errorf("%s: %d", s, got)
		} else if s.Valid() && !strings.Contains(err.Error(), "take another Version") {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// F103: versions are in the order of the changes, also of those within one
// second, and are the same whenever a record is read.
func TestF103VersionsFollowTheSequence(t *testing.T) {
	var last int64 = backfilled
	p := must(t, nil, Options{Index: "i", ID: "{pk}", Version: BySequence()})
	for i := range 30 { // made in one second, over a change of the number of digits
		rec := streamtest.Insert("t", map[string]any{"pk": "a", "n": i})
		first, err := p.Project(&rec)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := must(t, nil, Options{Index: "i", ID: "{pk}", Version: BySequence()}).Project(rec.Clone())
		if v := first[0].Version; v <= last || again[0].Version != v {
			t.Errorf("%s: version %d after %d, and %d when it is read again", rec.Sequence, v, last, again[0].Version)
		}
		last = first[0].Version
	}
	// Any two numbers that have a version have it in their order.
	numbers := []string{"1", "2", "34359738367", "100000000000000000000", "100000034359738367", "900000000000000000005", "1000000000000000000000", "26843545400000000034359738367", "26843545500000000000000000000"}
	for _, a := range numbers {
		for _, b := range numbers {
			m, errA := sequenceVersion(sluice.Sequence(a))
			n, errB := sequenceVersion(sluice.Sequence(b))
			x, _ := new(big.Int).SetString(a, 10)
			y, _ := new(big.Int).SetString(b, 10)
			if errA == nil && errB == nil && x.Cmp(y) < 0 != (m < n) {
				t.Errorf("%s has %d and %s has %d", a, m, b, n)
			}
		}
	}
}

// The version of the transit gateway's documents.
func TestVersionByFunc(t *testing.T) {
	v := ByFunc(func(it sluice.Item) (int64, error) {
		created, _ := it.Lookup("created_at")
		version, _ := it.Lookup("version")
		c, ok1 := created.Int64()
		n, ok2 := version.Int64()
		if !ok1 || !ok2 || n >= 1<<20 {
			return 0, errors.New("created_at or version is no number that fits")
		}
		return c<<20 | n, nil
	})
	o := Options{Index: "tgw", ID: "{owner_id}|{tgw_id}", Version: v}
	keys := streamtest.WithKeys("owner_id", "tgw_id")
	state := func(version, created int) map[string]any {
		return map[string]any{"owner_id": "111122223333", "tgw_id": "tgw-0a1", "version": version, "created_at": created}
	}
	const first, second = 1704164645000, 1704168245000
	modified := streamtest.Modify("tgw", state(1, first), state(2, first), keys)
	removed := streamtest.Remove("tgw", state(2, first), keys)
	again := streamtest.Insert("tgw", state(0, second), keys)
	for _, tt := range []struct {
		rec    *sluice.Record
		action document.Action
		want   int64
	}{
		{&modified, document.Put, 1786946146795520002},
		{&removed, document.Delete, 1786946146795520003},
		{&again, document.Put, 1786949921669120000},
	} {
		ops, err := must(t, nil, o).Project(tt.rec)
		if err != nil || ops[0].Version != tt.want || ops[0].Action != tt.action || ops[0].ID != "111122223333|tgw-0a1" || ops[0].Fence != document.Newer {
			t.Errorf("%+v, %v, want version %d", ops, err, tt.want)
		}
	}
	tooMany := streamtest.Modify("tgw", state(1, first), state(1<<20, first), keys)
	if _, err := must(t, nil, o).Project(&tooMany); !sluice.IsPermanent(err) {
		t.Error(err)
	}
	o.Version = ByFunc(func(sluice.Item) (int64, error) { return -1, nil })
	if _, err := must(t, nil, o).Project(&again); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "-1") {
		t.Error(err)
	}
}

func TestVersionsOfNumbersInOtherForms(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1.0": 1, "12E2": 1200, "9223372036854775807": math.MaxInt64} {
		got, err := ByAttribute("rev").ofImage(item.Of(item.Number("rev", text)))
		if got != want || err != nil {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
}

// What a backfill reads is older than what any record says, and is written
// where nothing is.
func TestSnapshots(t *testing.T) {
	read := streamtest.Snapshot("t", map[string]any{"pk": "a", "rev": 7})
	for _, tt := range []struct {
		version Version
		fence   document.Fence
		want    int64
	}{{BySequence(), document.Newer, 1}, {ByAttribute("rev"), document.Newer, 7}, {Unversioned(), document.NoFence, 0}} {
		o := Options{Index: "i", ID: "{pk}", Version: tt.version, UnfencedBackfill: true}
		ops, err := must(t, nil, o).Project(&read)
		if err != nil || ops[0].Fence != tt.fence || ops[0].Version != tt.want {
			t.Errorf("%v: %+v, %v", tt.version, ops, err)
		}
	}
	first := streamtest.Modify("t", map[string]any{"pk": "a", "n": 1}, map[string]any{"pk": "a", "n": 2}, streamtest.WithSequence("000000000000000000001"))
	index := streamtest.NewIndex()
	p := must(t, index.Write, Options{Index: "i", ID: "{pk}", Version: BySequence()})
	for _, rec := range []*sluice.Record{&read, &first, &read} {
		if err := p.Handle(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(index.Docs("i")[0].Source); got != `{"pk":"a","n":2}` && got != `{"n":2,"pk":"a"}` {
		t.Errorf("the first record of a stream lost to a backfill: %s", got)
	}
}

// An item that takes the place of a change, which the stream has forgotten, is no
// older than that: it follows what the change was to follow, and what came later
// stays.
func TestSnapshotInPlaceOfAChange(t *testing.T) {
	change := func(v string, at sluice.Sequence) *sluice.Record {
		rec := streamtest.Modify("t", map[string]any{"pk": "a"}, map[string]any{"pk": "a", "v": v}, streamtest.WithSequence(at))
		return &rec
	}
	place := streamtest.Snapshot("t", map[string]any{"pk": "a", "v": "now"})
	place.Sequence = "000000000000000000002"
	index := streamtest.NewIndex()
	p := must(t, index.Write, Options{Index: "i", ID: "{pk}", Version: BySequence()})
	for _, tt := range []struct {
		rec  *sluice.Record
		want string
	}{
		{change("before", "000000000000000000001"), "before"}, {&place, "now"},
		{change("later", "000000000000000000003"), "later"}, {&place, "later"},
	} {
		if err := p.Handle(t.Context(), tt.rec); err != nil {
			t.Fatal(err)
		}
		if got := string(index.Docs("i")[0].Source); !strings.Contains(got, `"v":"`+tt.want+`"`) {
			t.Errorf("%s: %s, want %s", tt.rec.EventName, got, tt.want)
		}
	}
}
