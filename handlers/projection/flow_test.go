package projection

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/tally"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

// contents are the documents of index "i", without their marks.
func contents(x *streamtest.Index) map[string]string {
	docs := map[string]string{}
	for _, d := range x.Docs("i") {
		body, _, marked := strings.Cut(string(d.Source), `"sluice":`)
		if marked {
			body = strings.TrimSuffix(body, ",") + "}"
		}
		docs[d.ID] = body
	}
	return docs
}

func withRoute(p *Projection) *router.Router {
	r := router.New(router.TypeFrom(router.Table(nil)))
	r.Handle("t#*", p.Handle, router.NeedsBoth(), router.Redrive())
	return r
}

// history is the life of an item: made, changed, deleted, made again.
func history(pk string) []sluice.Record {
	state := func(rev, n int) map[string]any { return map[string]any{"pk": pk, "rev": rev, "n": n} }
	return []sluice.Record{
		streamtest.Insert("t", state(1, 1)),
		streamtest.Modify("t", state(1, 1), state(2, 2)),
		streamtest.Modify("t", state(2, 2), state(3, 3)),
		streamtest.Remove("t", state(3, 3)),
		streamtest.Insert("t", state(5, 5)),
		streamtest.Modify("t", state(5, 5), state(6, 6)),
	}
}

// The document of an item that ends deleted is gone, although all changes came
// in one batch.
func TestADeletedItemLeavesNoDocument(t *testing.T) {
	for _, version := range []Version{ByAttribute("rev"), BySequence(), Unversioned()} {
		index := streamtest.NewIndex()
		o := Options{Index: "i", ID: "{pk}", Version: version, Include: []string{"n"}}
		a, b := history("a")[:4], history("b")[:3]
		res := streamtest.RunWith(t.Context(), flow.Options{Concurrency: 8}, withRoute(must(t, index.Write, o)), append(a, b...)...)
		if res.Err != nil || res.Settled != 7 {
			t.Fatal(res)
		}
		if diff := cmp.Diff(map[string]string{"b": `{"n":3}`}, contents(index)); diff != "" {
			t.Errorf("%v: %s", version, diff)
		}
	}
}

// Records are delivered again, in any order. The document ends as the last
// change left it, and a write that comes too late succeeds.
func TestRedeliveriesChangeNothing(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 6))
		version := []Version{ByAttribute("rev"), BySequence()}[r.IntN(2)]
		all := history("a")
		last := 1 + r.IntN(len(all))
		var deliveries []sluice.Record
		for i := range last {
			deliveries = append(deliveries, all[i])
			for range r.IntN(3) {
				again := all[r.IntN(i+1)]
				again.Origin = []sluice.Origin{sluice.Live, sluice.Redriven, sluice.Replayed}[r.IntN(3)]
				deliveries = append(deliveries, again)
			}
		}
		if r.IntN(2) == 0 {
			r.Shuffle(len(deliveries), func(i, j int) { deliveries[i], deliveries[j] = deliveries[j], deliveries[i] })
		}
		index := streamtest.NewIndex()
		o := Options{Index: "i", ID: "{pk}", Version: version, Include: []string{"n"}, Current: asItIs(all[last-1].New)}
		res := streamtest.Run(t.Context(), withRoute(must(t, index.Write, o)), deliveries...)
		if res.Err != nil {
			t.Fatal(res)
		}
		want := map[string]string{}
		if end := all[last-1]; end.New.Exists() {
			n, _ := end.New.Lookup("n")
			want["a"] = `{"n":` + n.Str() + `}`
		}
		if diff := cmp.Diff(want, contents(index)); diff != "" {
			t.Fatalf("seed %d, %v: %s", seed, version, diff)
		}
	}
}

// A change after the deletion restores no document. An item that is made again is
// written. With tombstones this holds forever.
func TestADeletedDocumentStaysDeleted(t *testing.T) {
	records := history("a")
	for _, tt := range []struct {
		name      string
		version   Version
		tombstone []Field
		plain     bool
		forget    bool
		want      map[string]string
	}{
		{"deletes", ByAttribute("rev"), nil, false, false, map[string]string{}},
		{"deletes, forgotten after gc_deletes", ByAttribute("rev"), nil, false, true, map[string]string{"a": `{"n":3}`}},
		{"tombstones", ByAttribute("rev"), []Field{Constant("deleted", true), Copy("pk", "pk")}, false, true, map[string]string{"a": `{"deleted":true,"pk":"a"}`}},
		{"by sequence", BySequence(), nil, false, true, map[string]string{}},
		{"by sequence, plain, forgotten", BySequence(), nil, true, true, map[string]string{"a": `{"n":3}`}},
	} {
		index := streamtest.NewIndex()
		o := Options{Index: "i", ID: "{pk}", Version: tt.version, Include: []string{"n"}, Tombstone: tt.tombstone, ForgetDeleted: tt.plain}
		r := withRoute(must(t, index.Write, o))
		streamtest.Run(t.Context(), r, records[:4]...)
		if tt.forget {
			index.ForgetDeletes()
		}
		if res := streamtest.Run(t.Context(), r, records[2], records[1]); res.Err != nil {
			t.Fatal(res)
		}
		if diff := cmp.Diff(tt.want, contents(index)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		streamtest.Run(t.Context(), r, records[4])
		if diff := cmp.Diff(map[string]string{"a": `{"n":5}`}, contents(index)); diff != "" {
			t.Errorf("%s, made again: %s", tt.name, diff)
		}
	}
}

// A deletion's version is the last number plus 1. An item that is made again must begin
// above it, as the docs of ByAttribute say.
func TestMadeAgainAboveTheDeletion(t *testing.T) {
	for rev, want := range map[int]map[string]string{4: {}, 5: {"a": `{"n":5}`}} {
		index := streamtest.NewIndex()
		r := withRoute(must(t, index.Write, Options{Index: "i", ID: "{pk}", Version: ByAttribute("rev"), Include: []string{"n"}}))
		records := append(history("a")[:4], streamtest.Insert("t", map[string]any{"pk": "a", "rev": rev, "n": 5}))
		if res := streamtest.Run(t.Context(), r, records...); res.Err != nil {
			t.Fatal(res)
		}
		if diff := cmp.Diff(want, contents(index)); diff != "" {
			t.Errorf("at %d: %s", rev, diff)
		}
	}
}

// A document moves when its index, id or routing changes. Each write may fail once, and
// every record comes once more in the end.
func TestMoves(t *testing.T) {
	state := func(rev int, kind string) map[string]any {
		return map[string]any{"pk": "a", "rev": rev, "kind": kind}
	}
	records := []sluice.Record{
		streamtest.Insert("t", state(1, "x")),
		streamtest.Modify("t", state(1, "x"), state(2, "y")),
		streamtest.Modify("t", state(2, "y"), state(3, "x")),
		streamtest.Modify("t", state(3, "x"), state(4, "z")),
		streamtest.Remove("t", state(4, "z")),
	}
	down := errors.New("connection refused")
	for _, o := range []Options{
		{Index: "i-{kind}", ID: "{pk}", Version: ByAttribute("rev")},
		{Index: "i", ID: "{kind}/{pk}", Version: BySequence()},
		{Index: "i", ID: "{kind}/{pk}", Version: Unversioned()},
		{Index: "i", ID: "{pk}", Routing: "{kind}", Version: BySequence()},
		{Index: "i", ID: "{pk}", Routing: "{kind}", Version: Unversioned()},
	} {
		for fails := range 9 {
			index := streamtest.NewIndex()
			if fails > 0 {
				index.Writes.FailNth(fails, down)
			}
			p := must(t, index.Write, o)
			for i := range records {
				streamtest.Run(t.Context(), withRoute(p), records[i])
				now := slices.Concat(index.Docs("i"), index.Docs("i-x"), index.Docs("i-y"), index.Docs("i-z"))
				if records[i].EventName == sluice.Remove {
					if len(now) > 0 {
						t.Errorf("%s, %s, failure %d: %d documents are left", o.ID, o.Version, fails, len(now))
					}
					continue
				}
				ops, err := must(t, nil, o).Project(&sluice.Record{EventName: sluice.Insert, New: records[i].New, Sequence: records[i].Sequence, StreamARN: records[i].StreamARN})
				if err != nil {
					t.Fatal(err)
				}
				if len(now) != 1 || now[0].Ref != ops[0].Ref() || string(now[0].Source) != string(ops[0].Body) {
					t.Errorf("%s %s, %s, failure %d, after record %d: %+v", o.Index, o.ID, o.Version, fails, i, now)
				}
			}
			if o.Version.kind == unversioned {
				continue
			}
			for i := range records { // and once more, late
				streamtest.Run(t.Context(), withRoute(p), records[i])
			}
			if docs := slices.Concat(index.Docs("i"), index.Docs("i-x"), index.Docs("i-y"), index.Docs("i-z")); len(docs) > 0 {
				t.Errorf("%s, %s: %+v came back", o.ID, o.Version, docs)
			}
		}
	}
}

// The new document is there before the old one goes.
func TestMoveWritesTheNewOneFirst(t *testing.T) {
	rec := streamtest.Modify("t", map[string]any{"pk": "a", "rev": 1, "kind": "x"}, map[string]any{"pk": "a", "rev": 2, "kind": "y"})
	ops, err := must(t, nil, Options{Index: "{kind}", ID: "{pk}", Version: ByAttribute("rev"), Exclude: []string{"rev"}}).Project(&rec)
	want := []document.Op{
		{Action: document.Put, Index: "y", IndexTemplate: "{kind}", ID: "a", Fence: document.Newer, Version: 2, Body: []byte(`{"kind":"y","pk":"a"}`)},
		{Action: document.Delete, Index: "x", IndexTemplate: "{kind}", ID: "a", Fence: document.Newer, Version: 2},
	}
	if diff := cmp.Diff(want, ops); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// A change that does not show is not written, and a late redelivery of any
// record before it still changes nothing.
func TestSkippedWritesLeaveNoHole(t *testing.T) {
	state := func(rev, n, hidden int) map[string]any {
		return map[string]any{"pk": "a", "rev": rev, "n": n, "hidden": hidden}
	}
	records := []sluice.Record{
		streamtest.Insert("t", state(1, 1, 0)),
		streamtest.Modify("t", state(1, 1, 0), state(2, 2, 0)),
		streamtest.Modify("t", state(2, 2, 0), state(3, 2, 1)),
		streamtest.Modify("t", state(3, 2, 1), state(4, 2, 2)),
	}
	for _, origin := range []sluice.Origin{sluice.Live, sluice.Redriven, sluice.Replayed} {
		for late := range records {
			index := streamtest.NewIndex()
			var counts tally.Tally
			o := Options{Index: "i", ID: "{pk}", Version: ByAttribute("rev"), Include: []string{"n"}, Metrics: &counts}
			r := withRoute(must(t, index.Write, o))
			res := streamtest.Run(t.Context(), r, records...)
			unchanged := counts.By("sluice_projection_unchanged_total")["t"]
			if len(index.Writes.Calls()) != 2 || unchanged != 2 || res.Outcomes[3].Result != flow.Skipped {
				t.Fatalf("%d writes, %d unchanged\n%v", len(index.Writes.Calls()), unchanged, res)
			}
			again := records[late]
			again.Origin = origin
			streamtest.Run(t.Context(), r, again)
			if diff := cmp.Diff(map[string]string{"a": `{"n":2}`}, contents(index)); diff != "" {
				t.Errorf("record %d, %v: %s", late, origin, diff)
			}
			gone := streamtest.Remove("t", state(4, 2, 2))
			streamtest.Run(t.Context(), r, gone, again)
			if len(contents(index)) > 0 {
				t.Errorf("record %d, %v, after the deletion: %s", late, origin, contents(index))
			}
		}
	}
}
