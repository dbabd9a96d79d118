package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
)

// ghosts is a world of n items with documents, and of more documents without.
func ghosts(n, more int) *world {
	w := newWorld(1)
	for i := range n + more {
		id := fmt.Sprintf("k%04d", i)
		r := row{rev: 1}
		w.docs[id] = doc{1, w.body(id, r), 0}
		if i < n {
			w.items[id] = r
		}
	}
	return w
}

// A table that is not the index's deletes nothing; neither do too many ghosts,
// unless their number was allowed.
func TestBrake(t *testing.T) {
	for _, tt := range []struct {
		name         string
		items, ghost int
		most         int
		want         *BrakeError
	}{
		{"empty", 0, 3, 0, &BrakeError{Ghosts: 3, Documents: 3, Allowed: 1, Empty: true}},
		{"one of few", 9, 1, 0, nil},
		{"two of few", 9, 2, 0, &BrakeError{Ghosts: 2, Documents: 11, Allowed: 1}},
		{"empty, whatever is allowed", 0, 3, 1000, &BrakeError{Ghosts: 3, Documents: 3, Allowed: 1000, Empty: true}},
		{"mostly empty", 9, 11, 0, &BrakeError{Ghosts: 11, Documents: 20, Allowed: 1, MostlyEmpty: true}},
		{"mostly empty, whatever is allowed", 9, 11, 1000, &BrakeError{Ghosts: 11, Documents: 20, Allowed: 1000, MostlyEmpty: true}},
		{"half", 10, 10, 10, nil},
		{"5 %", 95, 5, 0, nil},
		{"above 5 %", 94, 6, 0, &BrakeError{Ghosts: 6, Documents: 100, Allowed: 5}},
		{"above 5 %, and allowed", 94, 6, 6, nil},
		{"above what was allowed", 994, 6, 5, &BrakeError{Ghosts: 6, Documents: 1000, Allowed: 5}},
		{"no ghost", 3, 0, 0, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := ghosts(tt.items, tt.ghost)
			a := w.audit()
			a.MaxDeletes, a.Indices = tt.most, []string{"things"}
			told := map[string]int{}
			a.Found = func(d Drift) {
				told[d.Ref.ID]++
				if d.Kind != Ghost || told[d.Ref.ID] > 1 || a.Write != nil && d.Repaired != (tt.want == nil) {
					t.Errorf("%s: told %v", tt.name, d)
				}
			}
			dry, err := a.Run(t.Context())
			if err != nil || fmt.Sprint(dry.Brake) != fmt.Sprint(tt.want) || len(told) != tt.ghost {
				t.Errorf("%s: a dry run says %v, %v of %d ghosts, want %v", tt.name, dry.Brake, err, len(told), tt.want)
			}
			a.Write = w.Write
			clear(told)
			r, err := a.Run(t.Context())
			if got, _ := errors.AsType[*BrakeError](err); fmt.Sprint(got) != fmt.Sprint(tt.want) || got != nil && *got != *tt.want || (err == nil) != (tt.want == nil) {
				t.Errorf("%s: %+v, want %+v", tt.name, err, tt.want)
			}
			left := tt.items + tt.ghost
			if tt.want == nil {
				left = tt.items
			}
			if len(w.docs) != left || len(told) != tt.ghost || r.Ghosts != int64(tt.ghost) || r.Repaired+r.Refused != r.Ghosts {
				t.Errorf("%s: %d documents are left, want %d; %d told; %+v", tt.name, len(w.docs), left, len(told), r)
			}
		})
	}
}

// Above 1,000 ghosts none is deleted, however small their share, and the first
// 1,000 are not kept in memory.
func TestBrakeByNumber(t *testing.T) {
	for most, more := range map[int]int{0: 1001, 2000: 2001} {
		told := 0
		r := &run{Audit: Audit{MaxDeletes: most, Found: func(d Drift) {
			if told++; d.Err == nil || d.Repaired {
				t.Error(d)
			}
		}, Write: func(_ context.Context, op document.Op) error {
			t.Errorf("%v", op)
			return nil
		}}, ghosts: true}
		r.result.Listed, r.result.Documents = 1_000_000, 1_000_000
		for i := range more {
			if len(r.brake.held) > more-1 {
				t.Fatalf("%d are held", len(r.brake.held))
			}
			r.hold(Drift{Kind: Ghost, Ref: document.Ref{ID: fmt.Sprint(i)}}, document.Doc{}, true)
		}
		if err := r.release(t.Context()); err == nil || told != more || len(r.brake.held) > 0 {
			t.Errorf("%v, %d told", err, told)
		}
	}
}

// Items that are not to be in the index are there: the table is the right one.
func TestBrakeOfHiddenItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := ghosts(10, 0)
		for id := range w.items {
			w.items[id] = row{rev: 1, hidden: true}
		}
		a := w.audit()
		a.Write, a.MaxDeletes = w.Write, 10
		if r, err := a.Run(t.Context()); err != nil || r.Repaired != 10 || len(w.docs) > 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// An audit that ends early has deleted nothing, and reports its findings.
func TestEndsBeforeTheFirstDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := ghosts(100, 1)
		w.items["k0000"] = row{rev: 1, hidden: true}
		a := w.audit()
		a.Write = w.Write
		list := a.List
		a.List = func(ctx context.Context, index string) iter.Seq2[document.Doc, error] {
			return func(yield func(document.Doc, error) bool) {
				for doc, err := range list(ctx, index) {
					if doc.ID == "k0100" {
						err = errors.New("broken")
					}
					if !yield(doc, err) {
						return
					}
				}
			}
		}
		var told []string
		a.Found = func(d Drift) { told = append(told, d.String()) }
		_, err := a.Run(t.Context())
		if err == nil || len(w.docs) != 101 || !slices.Equal(told, []string{"ghost things/k0000 (not repaired: the audit ended before)"}) {
			t.Errorf("%v, %d documents, told %q", err, len(w.docs), told)
		}
	})
}

// The audit knows the documents of all routes, under any name of the index. It ignores
// documents of other applications.
func TestSharedIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := ghosts(100, 3)
		delete(w.items, "k0007")
		w.items["k0001"] = row{rev: 1, hidden: true} // which the other route writes
		a := w.audit()
		a.Write = w.Write
		a.Behind = func(_ context.Context, name string) ([]string, error) {
			return map[string][]string{"things": {"things-000001"}, "all": {"things-000001"}}[name], nil
		}
		a.Project = func(rec *sluice.Record) ([]document.Op, error) {
			ops, err := w.Project(rec)
			if key, _ := rec.Keys.Lookup("id"); key.Str() == "k0001" {
				for id, index := range map[string]string{"k0100": "things-000001", "k0101": "all", "k0001": "things-000001"} {
					ops = append(ops, document.Op{
						Action: document.Put, Index: index, ID: id, Fence: document.Newer, Version: 1, Body: []byte(w.body(id, row{rev: 1})),
					})
				}
			}
			return ops, err
		}
		a.Get = func(ctx context.Context, refs []document.Ref) ([]document.Doc, error) {
			refs = slices.Clone(refs)
			for i := range refs {
				refs[i].Index = "things"
			}
			return w.Get(ctx, refs)
		}
		a.List = func(ctx context.Context, _ string) iter.Seq2[document.Doc, error] { return w.List(ctx, "things") }
		a.Foreign = func(doc document.Doc) bool { return strings.Contains(string(doc.Source), `"k0102"`) }
		var told []string
		a.Found = func(d Drift) { told = append(told, d.String()) }
		r, err := a.Run(t.Context())
		want := Result{Items: 99, Documents: 101, Listed: 103, Ghosts: 1, Repaired: 1, Foreign: 1}
		if err != nil || r != want || len(told) != 1 || !strings.HasSuffix(told[0], "/k0007 (repaired)") || len(w.docs) != 102 {
			t.Errorf("%+v, %v, want %+v; told %q", r, err, want, told)
		}
	})
}

// A document that one route writes and another deletes, of the same item, is
// there.
func TestWrittenAndDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := ghosts(2, 0)
		a := w.audit()
		a.Write = w.Write
		a.Project = func(rec *sluice.Record) ([]document.Op, error) {
			ops, err := w.Project(rec)
			gone := ops[0]
			gone.Action, gone.Body = document.Delete, nil
			return []document.Op{gone, ops[0]}, err
		}
		if r, err := a.Run(t.Context()); err != nil || !r.Clean() || len(w.docs) != 2 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// An alias that is moved during an audit makes no ghosts of all documents.
func TestMovedAlias(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := ghosts(2, 0)
		a := w.audit()
		asked := 0
		a.Behind = func(context.Context, string) ([]string, error) {
			asked++
			return []string{fmt.Sprint("things-", asked)}, nil
		}
		_, err := a.Run(t.Context())
		if want := "audit: things led to [things-1] when the audit began, and leads to [things-2] now: run it again"; err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	})
}
