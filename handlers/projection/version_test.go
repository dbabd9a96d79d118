package projection

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

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

// A backfilled item is older than every record, and is written if the document is missing.
func TestSnapshots(t *testing.T) {
	read := streamtest.Snapshot("t", map[string]any{"pk": "a", "rev": 7})
	for _, tt := range []struct {
		version Version
		fence   document.Fence
		want    int64
	}{{BySequence(), document.Exact, 1}, {ByAttribute("rev"), document.Newer, 7}, {Unversioned(), document.NoFence, 0}} {
		o := Options{Index: "i", ID: "{pk}", Version: tt.version, UnfencedBackfill: true}
		ops, err := must(t, nil, o).Project(&read)
		if err != nil || ops[0].Fence != tt.fence || ops[0].Version != tt.want {
			t.Errorf("%v: %+v, %v", tt.version, ops, err)
		}
	}
	first := streamtest.Modify("t", map[string]any{"pk": "a", "n": 1}, map[string]any{"pk": "a", "n": 2}, streamtest.WithSequence("000000000000000000001")) // the least there can be
	index := streamtest.NewIndex()
	p := must(t, index.Write, Options{Index: "i", ID: "{pk}", Version: BySequence()})
	for _, rec := range []*sluice.Record{&read, &first, &read} {
		if err := p.Handle(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	if got := contents(index)["a"]; got != `{"pk":"a","n":2}` && got != `{"n":2,"pk":"a"}` {
		t.Errorf("the first record of a stream lost to a backfill: %s", got)
	}
}

// An item that replaces a trimmed change has the change's place: it wins over earlier
// documents, and loses to later ones.
func TestSnapshotInPlaceOfAChange(t *testing.T) {
	change := func(v string, at sluice.Sequence) *sluice.Record {
		rec := streamtest.Modify("t", map[string]any{"pk": "a"}, map[string]any{"pk": "a", "v": v}, streamtest.WithSequence(at))
		return &rec
	}
	place := streamtest.Snapshot("t", map[string]any{"pk": "a", "v": "now"})
	place.Sequence, place.StreamARN = recordtest.Sequence(2), change("", recordtest.Sequence(1)).StreamARN
	index := streamtest.NewIndex()
	p := must(t, index.Write, Options{Index: "i", ID: "{pk}", Version: BySequence()})
	for _, tt := range []struct {
		rec  *sluice.Record
		want string
	}{
		{change("before", recordtest.Sequence(1)), "before"}, {&place, "now"},
		{change("later", recordtest.Sequence(3)), "later"}, {&place, "later"},
	} {
		if err := p.Handle(t.Context(), tt.rec); err != nil {
			t.Fatal(err)
		}
		if got := string(index.Docs("i")[0].Source); !strings.Contains(got, `"v":"`+tt.want+`"`) {
			t.Errorf("%s: %s, want %s", tt.rec.EventName, got, tt.want)
		}
	}
}
