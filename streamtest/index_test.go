package streamtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docrules"
)

func TestIndexRefusesForGood(t *testing.T) {
	ok := document.Op{Action: document.Put, Index: "i", ID: "a", Body: []byte(`{"a":[{"a":1},{"a":2}],"b":null}`)}
	for _, tt := range []struct {
		name   string
		change func(*document.Op)
		want   string
	}{
		{"", func(*document.Op) {}, ""},
		{"no index", func(op *document.Op) { op.Index = "" }, "the index is missing"},
		{"no id", func(op *document.Op) { op.ID = "" }, "the id is missing"},
		{"long id", func(op *document.Op) { op.ID = strings.Repeat("x", 513) }, "513 bytes"},
		{"version", func(op *document.Op) { op.Fence, op.Version = document.Newer, -1 }, "version -1 is negative"},
		{"version without a fence", func(op *document.Op) { op.Version = 1 }, "version 1 without a fence"},
		{"fence", func(op *document.Op) { op.Fence = 9 }, "unknown fence"},
		{"text", func(op *document.Op) { op.Routing = "\xff" }, "UTF-8"},
		{"action", func(op *document.Op) { op.Action = 0 }, "unknown action"},
		{"no body", func(op *document.Op) { op.Body = nil }, "no JSON object"},
		{"array", func(op *document.Op) { op.Body = []byte(`[]`) }, "no JSON object"},
		{"torn", func(op *document.Op) { op.Body = []byte(`{"a":1`) }, "the body: "},
		{"more", func(op *document.Op) { op.Body = []byte(`{} {}`) }, "goes on"},
		{"duplicate", func(op *document.Op) { op.Body = []byte(`{"a":1,"\u0061":2}`) }, `duplicate field "a"`},
		{"duplicate below", func(op *document.Op) { op.Body = []byte(`{"b":[{"a":1,"a":2}]}`) }, `duplicate field "a"`},
	} {
		x := NewIndex()
		op := ok
		tt.change(&op)
		err := x.Write(t.Context(), op)
		var e *document.Error
		if tt.want == "" {
			if err != nil || !x.Get(op.Ref()).Found {
				t.Errorf("%v", err)
			}
			continue
		}
		if !sluice.IsPermanent(err) || !errors.As(err, &e) || e.Status != 400 || !strings.Contains(e.Reason, tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
		if len(x.Docs("i")) != 0 {
			t.Errorf("%s: was written", tt.name)
		}
	}
}

func TestIndexTells(t *testing.T) {
	x := NewIndex()
	body := []byte(`{"n":1}`)
	down := errors.New("down")
	x.Writes.FailFirst(1, down)
	put := func(id string, version int64) document.Op {
		return document.Op{Action: document.Put, Index: "i", ID: id, Routing: "r", Fence: document.Newer, Version: version, Body: body}
	}
	errs := x.WriteAll(t.Context(), []document.Op{put("b", 1), put("b", 2), put("a", 3), put("a", 2)})
	if len(errs) != 4 || !errors.Is(errs[0], down) || errs[1] != nil {
		t.Error(errs)
	}
	if errs := x.WriteAll(t.Context(), []document.Op{{Action: document.Delete, Index: "i", ID: "c", Fence: document.Newer, Version: 5}}); errs != nil {
		t.Error(errs)
	}
	body[1] = 'x' // memory of the caller's
	want := []document.Doc{
		{Ref: document.Ref{Index: "i", ID: "a", Routing: "r"}, Found: true, Version: 3, Revision: document.Revision{SeqNo: 1, PrimaryTerm: 1}, Source: []byte(`{"n":1}`)},
		{Ref: document.Ref{Index: "i", ID: "b", Routing: "r"}, Found: true, Version: 2, Revision: document.Revision{PrimaryTerm: 1}, Source: []byte(`{"n":1}`)},
	}
	if diff := cmp.Diff(want, x.Docs("i")); diff != "" {
		t.Error(diff)
	}
	if r := x.Refused(); len(r) != 1 || r[0].ID != "a" || r[0].Version != 2 || string(r[0].Body) != `{"n":1}` {
		t.Errorf("refused %v", r)
	}
	older := document.Op{Action: document.Put, Index: "i", ID: "c", Fence: document.Newer, Version: 4, Body: []byte(`{}`)}
	if err := x.Write(t.Context(), older); err != nil || x.Get(older.Ref()).Found {
		t.Error("an older write brought back what was deleted")
	}
	x.ForgetDeletes()
	if err := x.Write(t.Context(), older); err != nil || !x.Get(older.Ref()).Found {
		t.Error("the deletion is still known")
	}
}

// An Index says what refused a write, as the sink for OpenSearch does.
func TestIndexSaysWhatRefused(t *testing.T) {
	x := NewIndex()
	exact := func(id, sequence, deleted string) document.Op {
		body := docrules.WithMark([]byte("{}"), "m", document.Mark{Sequence: sequence, Deleted: deleted})
		return document.Op{Action: document.Put, Index: "i", ID: id, Fence: document.Exact, Version: 128, Sequence: sequence, MarkField: "m", Body: body}
	}
	newer := func(id string, version int64) document.Op {
		return document.Op{Action: document.Put, Index: "i", ID: id, Fence: document.Newer, Version: version, Body: []byte("{}")}
	}
	deletion := document.Op{Action: document.Delete, Index: "i", ID: "gone", Fence: document.Newer, Version: 1000}
	later := exact("a", "2", "")
	if errs := x.WriteAll(t.Context(), []document.Op{later, newer("n", 7), deletion}); errs != nil {
		t.Fatal(errs)
	}
	plain, revised := exact("gone", "1", ""), newer("n", 0)
	plain.ForgetDeleted = true
	revised.Fence, revised.Revision = document.Unchanged, document.Revision{SeqNo: 99, PrimaryTerm: 1}
	for _, tt := range []struct {
		name string
		op   document.Op
		want []document.Refusal
		err  string
	}{
		{"an older change", exact("a", "1", ""), []document.Refusal{{Version: 128, Doc: x.Get(later.Ref())}}, ""},
		{"the same change", later, []document.Refusal{{Version: 128, Doc: x.Get(later.Ref())}}, ""},
		{"a later change of the same version", exact("a", "3", ""), nil, ""},
		{"a change where a deletion is remembered", exact("gone", "1", ""), nil, "remembers a deletion"},
		{"the same without tombstones", plain, []document.Refusal{{Deleted: true}}, ""},
		{"a tombstone there", exact("gone", "1", "2026-01-01T00:00:00Z"), []document.Refusal{{Deleted: true}}, ""},
		{"a lower version", newer("n", 6), []document.Refusal{{Version: 7}}, ""},
		{"a lower version than that of a deletion", newer("gone", 6), []document.Refusal{{Version: 1000}}, ""},
		{"a revision that is over", revised, []document.Refusal{{}}, ""},
		{"a greater version", newer("n", 8), nil, ""},
	} {
		var got []document.Refusal
		tt.op.Refused = func(r document.Refusal) {
			x.Refused() // it may use the index
			got = append(got, r)
		}
		err := x.Write(t.Context(), tt.op)
		if (err != nil) != (tt.err != "") || err != nil && (!strings.Contains(err.Error(), tt.err) || sluice.IsPermanent(err)) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}
