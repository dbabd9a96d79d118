package projection

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// shown takes items whose attribute show is true.
func shown(it sluice.Item) (bool, error) {
	v, ok := it.Lookup("show")
	if ok && v.Kind() != item.BOOL {
		return false, errors.New("show is not true or false")
	}
	return ok && v.Bool(), nil
}

func TestOnly(t *testing.T) {
	const (
		in1    = `{"pk":{"S":"a"},"rev":{"N":"1"},"show":{"BOOL":true}}`
		out2   = `{"pk":{"S":"a"},"rev":{"N":"2"},"show":{"BOOL":false}}`
		out3   = `{"pk":{"S":"a"},"rev":{"N":"3"},"show":{"BOOL":false}}`
		in4    = `{"pk":{"S":"a"},"rev":{"N":"4"},"show":{"BOOL":true}}`
		none   = `{"pk":{"S":"a"},"draft":{"BOOL":true}}`
		broken = `{"pk":{"S":"a"},"rev":{"N":"2"},"show":{"S":"yes"}}`
	)
	put := func(version int64) document.Op {
		return document.Op{Action: document.Put, Index: "tgw", ID: "a", Fence: document.Newer, Version: version, Body: []byte(`{"pk":"a"}`)}
	}
	gone := func(version int64) document.Op {
		return document.Op{Action: document.Delete, Index: "tgw", ID: "a", Fence: document.Newer, Version: version}
	}
	inPlace := streamtest.Snapshot("t", out2)
	inPlace.Sequence = recordtest.Sequence(2)
	for _, tt := range []struct {
		name string
		rec  sluice.Record
		want []document.Op
	}{
		{"taken", streamtest.Insert("t", in1), []document.Op{put(1)}},
		{"not taken", streamtest.Insert("t", out2), nil},
		{"not taken, and without a version", streamtest.Insert("t", none), nil},
		{"read by a backfill, taken", streamtest.Snapshot("t", in1), []document.Op{put(1)}},
		{"read by a backfill, not taken", streamtest.Snapshot("t", out2), nil},
		{"in place of a change, not taken", inPlace, []document.Op{gone(2)}},
		{"leaves", streamtest.Modify("t", in1, out2), []document.Op{gone(2)}},
		{"stays outside", streamtest.Modify("t", out2, out3), nil},
		{"stays outside, replayed", streamtest.Modify("t", out2, out3, streamtest.WithOrigin(sluice.Replayed)), []document.Op{gone(3)}},
		{"stays outside, without its old image", streamtest.Modify("t", out2, out3, streamtest.WithView(item.NewImage)), []document.Op{gone(3)}},
		{"comes in, with the document that it would have had before", streamtest.Modify("t", out3, in4), []document.Op{put(4)}},
		{"removed", streamtest.Remove("t", in4), []document.Op{gone(5)}},
		{"removed outside", streamtest.Remove("t", out3), nil},
		{"removed outside, without a version", streamtest.Remove("t", none), nil},
	} {
		o := small()
		o.Only, o.Include = shown, []string{"pk"}
		got, err := must(t, nil, o).Project(&tt.rec)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", tt.name, err, diff)
		}
	}
	o := small()
	o.Only = shown
	rec := streamtest.Modify("t", in1, broken)
	if _, err := must(t, nil, o).Project(&rec); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "show is not true or false") {
		t.Errorf("an error of Only: %v, want it, for good", err)
	}
}

// The document is at another place before and after: the one to be deleted is
// where the item's old image had it.
func TestOnlyWhereTheDocumentMoves(t *testing.T) {
	o := small()
	o.ID, o.Only = "{slug}", shown
	at := func(slug string, rev int, show bool) map[string]any {
		it := map[string]any{"pk": "a", "rev": rev, "show": show}
		if slug != "" {
			it["slug"] = slug
		}
		return it
	}
	for _, tt := range []struct {
		name string
		rec  sluice.Record
		want string
	}{
		{"leaves and moves", streamtest.Modify("t", at("old", 1, true), at("new", 2, false)), "old@2"},
		{"leaves, and has no place any more", streamtest.Modify("t", at("old", 1, true), at("", 2, false)), "old@2"},
		{"had no place", streamtest.Modify("t", at("", 1, true), at("new", 2, false)), ""},
	} {
		ops, err := must(t, nil, o).Project(&tt.rec)
		got := ""
		for _, op := range ops {
			got += fmt.Sprintf("%s@%d", op.ID, op.Version)
		}
		if got != tt.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}

// No other view of the stream helps an item that takes the place of a change.
func TestOnlyWhereTheItemInPlaceOfAChangeHasNoPlace(t *testing.T) {
	o := small()
	o.ID, o.Only = "{slug}", shown
	rec := streamtest.Snapshot("t", map[string]any{"pk": "a", "rev": 2, "show": false})
	rec.Sequence = recordtest.Sequence(2)
	_, err := must(t, nil, o).Project(&rec)
	if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "run an audit to find it") || strings.Contains(err.Error(), "StreamViewType") {
		t.Error(err)
	}
}

// For any changes and redeliveries, the index ends with the documents of exactly the
// items that fulfil the condition.
func TestOnlyConverges(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		index := streamtest.NewIndex()
		o := small()
		o.Only, o.Include = shown, []string{"pk", "n"}
		p := must(t, index.Write, o)
		items := map[string]map[string]any{}
		revs := map[string]int{}
		var recs []sluice.Record
		for range 40 {
			pk := string(rune('a' + r.IntN(3)))
			old := items[pk]
			revs[pk]++
			now := map[string]any{"pk": pk, "rev": revs[pk], "n": r.IntN(2), "show": r.IntN(2) == 0}
			switch {
			case old == nil:
				recs, items[pk] = append(recs, streamtest.Insert("t", now)), now
			case r.IntN(5) == 0:
				recs = append(recs, streamtest.Remove("t", old))
				delete(items, pk)
				revs[pk]++ // above the fence of the deletion
			default:
				recs, items[pk] = append(recs, streamtest.Modify("t", old, now)), now
			}
		}
		for i := 0; i < len(recs); i++ {
			if err := p.Handle(t.Context(), &recs[i]); err != nil && !sluice.IsSkip(err) {
				t.Fatal(err)
			}
			if r.IntN(10) == 0 { // a restart behind the last checkpoint
				i = max(-1, i-r.IntN(6)-1)
			}
		}
		want := []string{}
		for _, pk := range slices.Sorted(maps.Keys(items)) {
			if items[pk]["show"] == true {
				want = append(want, fmt.Sprintf(`{"n":%d,"pk":%q}`, items[pk]["n"], pk))
			}
		}
		got := []string{}
		for _, doc := range index.Docs("tgw") {
			got = append(got, string(doc.Source))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d:\n%s", seed, diff)
		}
	}
}
