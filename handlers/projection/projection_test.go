package projection

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

func must(t testing.TB, write func(context.Context, document.Op) error, o Options) *Projection {
	t.Helper()
	if o.Current == nil {
		o.Current = asItIs(sluice.Item{})
	}
	p, err := New(write, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// asItIs returns an Options.Current with this item.
func asItIs(it sluice.Item) func(context.Context, *sluice.Record) (sluice.Item, error) {
	return func(context.Context, *sluice.Record) (sluice.Item, error) { return it, nil }
}

// small returns options; most tests change one of them.
func small() Options { return Options{Index: "tgw", ID: "{pk}", Version: ByAttribute("rev")} }

// bodyOf returns the document that o makes of an item.
func bodyOf(t testing.TB, o Options, it any) string {
	t.Helper()
	rec := streamtest.Insert("t", it)
	ops, err := must(t, nil, o).Project(&rec)
	if err != nil {
		t.Fatal(err)
	}
	return string(ops[0].Body)
}

func TestRecords(t *testing.T) {
	const (
		v1 = `{"pk":{"S":"a"},"rev":{"N":"1"},"n":{"N":"10"}}`
		v2 = `{"pk":{"S":"a"},"rev":{"N":"2"},"n":{"N":"20"}}`
	)
	put := func(version int64, body string) document.Op {
		return document.Op{Action: document.Put, Index: "tgw", ID: "a", Fence: document.Newer, Version: version, Body: []byte(body)}
	}
	gone := document.Op{Action: document.Delete, Index: "tgw", ID: "a", Fence: document.Newer, Version: 3}
	for _, tt := range []struct {
		name string
		rec  sluice.Record
		o    func(*Options)
		want []document.Op
	}{
		{"INSERT", streamtest.Insert("t", v1), nil, []document.Op{put(1, `{"pk":"a","rev":1,"n":10}`)}},
		{"MODIFY", streamtest.Modify("t", v1, v2), nil, []document.Op{put(2, `{"pk":"a","rev":2,"n":20}`)}},
		{"REMOVE", streamtest.Remove("t", v2), nil, []document.Op{gone}},
		{"TTL", streamtest.Expire("t", v2), nil, []document.Op{gone}},
		{"SNAPSHOT", streamtest.Snapshot("t", v2), nil, []document.Op{put(2, `{"pk":"a","rev":2,"n":20}`)}},
		{"unchanged", streamtest.Modify("t", v1, v2), func(o *Options) { o.Include = []string{"pk"} }, nil},
		{"unchanged, but written", streamtest.Modify("t", v1, v2), func(o *Options) { o.Include, o.WriteUnchanged = []string{"pk"}, true }, []document.Op{put(2, `{"pk":"a"}`)}},
		{"unchanged, redriven", streamtest.Modify("t", v1, v2, streamtest.WithOrigin(sluice.Redriven)), func(o *Options) { o.Include = []string{"pk"} }, []document.Op{put(2, `{"pk":"a"}`)}},
		{"unchanged, replayed", streamtest.Modify("t", v1, v2, streamtest.WithOrigin(sluice.Replayed)), func(o *Options) { o.Include = []string{"pk"} }, []document.Op{put(2, `{"pk":"a"}`)}},
		{"without old image", streamtest.Modify("t", v1, v2, streamtest.WithView(item.NewImage)), func(o *Options) { o.Include = []string{"pk"} }, []document.Op{put(2, `{"pk":"a"}`)}},
	} {
		o := small()
		if tt.o != nil {
			tt.o(&o)
		}
		got, err := must(t, nil, o).Project(&tt.rec)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", tt.name, err, diff)
		}
	}
}

func TestHandle(t *testing.T) {
	index := streamtest.NewIndex()
	p := must(t, index.Write, small())
	v1, v2 := map[string]any{"pk": "a", "rev": 1}, map[string]any{"pk": "a", "rev": 2}
	inserted, modified, removed := streamtest.Insert("t", v1), streamtest.Modify("t", v1, v2), streamtest.Remove("t", v2)
	ref := document.Ref{Index: "tgw", ID: "a"}
	for _, rec := range []*sluice.Record{&inserted, &modified, &inserted} {
		if err := p.Handle(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	want := document.Doc{Ref: ref, Found: true, Version: 2, Revision: document.Revision{SeqNo: 1, PrimaryTerm: 1}, Source: []byte(`{"pk":"a","rev":2}`)}
	if diff := cmp.Diff(want, index.Get(ref)); diff != "" {
		t.Error(diff)
	}
	for _, rec := range []*sluice.Record{&removed, &modified, &inserted} {
		if err := p.Handle(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	if got := index.Get(ref); got.Found {
		t.Errorf("it came back: %s", got.Source)
	}
	down := errors.New("connection refused")
	index.Writes.FailFirst(1, down)
	if err := p.Handle(t.Context(), &removed); !errors.Is(err, down) || sluice.IsPermanent(err) {
		t.Error(err)
	}
}

func TestFailures(t *testing.T) {
	full := map[string]any{"pk": "a", "rev": 1, "kind": "x"}
	for _, tt := range []struct {
		name string
		rec  sluice.Record
		o    Options
		want string
	}{
		{"no version", streamtest.Insert("t", map[string]any{"pk": "a"}), small(), `INSERT of table t: the version of the document: the item has no attribute "rev"`},
		{"version is text", streamtest.Insert("t", map[string]any{"pk": "a", "rev": "1"}), small(), `attribute "rev" is of type S, want an ISO 8601 time`},
		{"version is a fraction", streamtest.Insert("t", `{"pk":{"S":"a"},"rev":{"N":"1.5"}}`), small(), `attribute "rev" is 1.5, want an integer from 0 to`},
		{"version is negative", streamtest.Insert("t", map[string]any{"pk": "a", "rev": -1}), small(), `attribute "rev" is -1, want an integer`},
		{"version is too large", streamtest.Insert("t", `{"pk":{"S":"a"},"rev":{"N":"9223372036854775808"}}`), small(), `attribute "rev" is 9223372036854775808`},
		{"no version after it", streamtest.Remove("t", `{"pk":{"S":"a"},"rev":{"N":"9223372036854775807"}}`), small(), `there is none after it for the deletion`},
		{"keys only", streamtest.Insert("t", full, streamtest.WithView(item.KeysOnly)), small(), `it came without its new image: set the table's StreamViewType`},
		{"removed without old image", streamtest.Remove("t", full, streamtest.WithView(item.NewImage)), small(), `the version is taken from the old image, without which the record came`},
		{"place without old image", streamtest.Modify("t", full, full, streamtest.WithView(item.NewImage)), Options{Index: "{kind}", ID: "{pk}", Version: ByAttribute("rev")}, `attribute "kind" says where the document is, and it came without its old image`},
		{"removed place without old image", streamtest.Remove("t", full, streamtest.WithView(item.NewImage)), Options{Index: "{kind}", ID: "{pk}", Version: BySequence()}, `the item has no attribute "kind"; it came without its old image`},
		{"removed without a place", streamtest.Remove("t", full), Options{Index: "{other}", ID: "{pk}", Version: BySequence()}, `the item has no attribute "other"`},
		{"no id", streamtest.Insert("t", full), Options{Index: "i", ID: "{id}", Version: Unversioned()}, `the id of the document: template "{id}": the item has no attribute "id"`},
		{"id is a map", streamtest.Insert("t", map[string]any{"pk": "a", "id": map[string]any{}}), Options{Index: "i", ID: "{id}", Version: Unversioned()}, `attribute "id" is of type M, want S, N or B`},
		{"id is long", streamtest.Insert("t", map[string]any{"pk": strings.Repeat("é", 257)}), Options{Index: "i", ID: "{pk}", Version: Unversioned()}, `it has 514 bytes, OpenSearch takes 512; Options.HashLongIDs`},
		{"index", streamtest.Insert("t", map[string]any{"pk": "A"}), Options{Index: "{pk}", ID: "{pk}", Version: Unversioned()}, `template "{pk}": the name has 'A' in it, which is not lower case`},
		{"backfill", streamtest.Snapshot("t", full), Options{Index: "i", ID: "{pk}", Version: Unversioned()}, `set UnfencedBackfill`},
		{"message", sluice.Record{EventName: sluice.Delivery}, small(), `MESSAGE of table : it is no change of an item`},
	} {
		ops, err := must(t, nil, tt.o).Project(&tt.rec)
		if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), tt.want) || ops != nil {
			t.Errorf("%s: %v, %v\nwant %s", tt.name, ops, err, tt.want)
		}
	}
}
