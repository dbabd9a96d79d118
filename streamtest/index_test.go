package streamtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
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
