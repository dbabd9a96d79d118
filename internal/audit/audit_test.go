package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/localtest"
)

func (w *world) audit() Audit {
	return Audit{Scan: w.Scan, Project: w.Project, Read: w.Read, Get: w.Get, List: w.List}
}

func TestJudge(t *testing.T) {
	put := func(version int64, fence document.Fence) *document.Op {
		return &document.Op{Action: document.Put, Version: version, Fence: fence, Body: []byte(`{"a":{"b":[1,2]}}`)}
	}
	same := document.Doc{Found: true, Version: 5, Source: []byte(`{"a":{"b":[1,2]}}`)}
	other := document.Doc{Found: true, Version: 5, Source: []byte(`{"a":{"b":[1,3]}}`)}
	gone := &document.Op{Action: document.Delete, Version: 5, Fence: document.Newer}
	for _, tt := range []struct {
		name string
		want *document.Op
		doc  document.Doc
		kind Kind
		path string
	}{
		{"nothing and nothing", nil, document.Doc{}, 0, ""},
		{"no item", nil, same, Ghost, ""},
		{"an item that is not to be there", gone, same, Ghost, ""},
		{"and is not", gone, document.Doc{}, 0, ""},
		{"no document", put(5, document.Newer), document.Doc{}, Missing, ""},
		{"equal", put(5, document.Newer), same, 0, ""},
		{"older", put(6, document.Newer), other, Stale, "a.b[1]"},
		{"older, and changes left it as it is", put(6, document.Newer), same, 0, ""},
		{"newer", put(4, document.Newer), same, Ahead, ""},
		{"newer, and another body", put(4, document.Newer), other, Ahead, ""},
		{"a tombstone, and the item began anew below it", put(2, document.Newer), document.Doc{Found: true, Version: 5, Source: []byte(`{"deleted":true}`)}, Ahead, ""},
		{"another body", put(5, document.Newer), other, Different, "a.b[1]"},
		{"versions that say nothing", put(1, document.Exact), same, 0, ""},
		{"and another body", put(1, document.Exact), other, Different, "a.b[1]"},
		{"no fence", put(0, document.NoFence), same, 0, ""},
		{"no fence and another body", put(0, document.NoFence), other, Different, "a.b[1]"},
	} {
		if kind, path := judge(tt.want, tt.doc); kind != tt.kind || path != tt.path {
			t.Errorf("%s: %v at %q, want %v at %q", tt.name, kind, path, tt.kind, tt.path)
		}
	}
}

// A change newer than the source of a repair has a higher version: it wins over the
// repair.
func TestRemedy(t *testing.T) {
	ref := document.Ref{Index: "things", ID: "a", Routing: "r"}
	op := func(a document.Action, f document.Fence, version int64) document.Op {
		o := document.Op{Action: a, Index: ref.Index, ID: ref.ID, Routing: ref.Routing, Fence: f, Version: version}
		if a == document.Put {
			o.Body = []byte("{}")
		}
		return o
	}
	put := func(f document.Fence, version int64) *document.Op { o := op(document.Put, f, version); return &o }
	at := func(version int64) document.Doc { return document.Doc{Ref: ref, Found: true, Version: version} }
	for _, tt := range []struct {
		name   string
		kind   Kind
		want   *document.Op
		doc    document.Doc
		remedy document.Op
	}{
		{"ghost", Ghost, nil, at(7), op(document.Delete, document.NewerOrEqual, 7)},
		{"hidden", Ghost, &document.Op{Action: document.Delete, Version: 9}, at(7), op(document.Delete, document.NewerOrEqual, 7)},
		{"missing", Missing, put(document.Newer, 7), document.Doc{Ref: ref}, op(document.Put, document.NewerOrEqual, 7)},
		{"stale", Stale, put(document.Newer, 7), at(6), op(document.Put, document.NewerOrEqual, 7)},
		{"different", Different, put(document.Newer, 7), at(7), op(document.Put, document.NewerOrEqual, 7)},
		{"different, no fence", Different, put(document.NoFence, 0), at(7), op(document.Put, document.NewerOrEqual, 7)},
		{"missing, no fence", Missing, put(document.NoFence, 0), document.Doc{Ref: ref}, op(document.Put, document.Newer, 1)},
	} {
		r := &run{}
		got := r.remedy(Drift{Kind: tt.kind, Ref: ref}, tt.want, tt.doc)
		if fmt.Sprint(got) != fmt.Sprint(tt.remedy) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.remedy)
		}
	}
}

// A repair by marks keeps the mark of the document, and is refused when the
// document has changed since it was read.
func TestRemedyByMarks(t *testing.T) {
	ref, at := document.Ref{Index: "things", ID: "a", Routing: "r"}, document.Revision{SeqNo: 3, PrimaryTerm: 2}
	doc := func(source string) document.Doc {
		return document.Doc{Ref: ref, Found: true, Version: 7, Revision: at, Source: []byte(source)}
	}
	later := stamp(5)
	marked, tombstone := doc(`{"n":1,"m":{"sequence":"`+later+`"}}`), doc(`{"m":{"sequence":"`+later+`","deleted":"2026-01-01T00:00:00Z"}}`)
	want := &document.Op{Action: document.Put, Index: "things", ID: "a", Routing: "r", Fence: document.Exact, Version: 1, Sequence: beforeAll, MarkField: "m", Body: []byte(`{"n":2,"m":{"sequence":"` + beforeAll + `"}}`)}
	for _, tt := range []struct {
		name   string
		kind   Kind
		want   *document.Op
		doc    document.Doc
		forget bool
		action document.Action
		fence  document.Fence
		body   string // of which a time is left out
	}{
		{"different", Different, want, marked, false, document.Put, document.Unchanged, `{"m":{"sequence":"` + later + `"},"n":2}`},
		{"over a tombstone", Missing, want, tombstone, false, document.Put, document.Unchanged, `{"m":{"sequence":"` + later + `"},"n":2}`},
		{"over a document without a mark", Different, want, doc(`{"n":1}`), false, document.Put, document.Unchanged, `{"m":{"sequence":"` + beforeAll + `"},"n":2}`},
		{"missing", Missing, want, document.Doc{Ref: ref}, false, document.Put, document.Exact, string(want.Body)},
		{"ghost", Ghost, nil, marked, false, document.Put, document.Unchanged, `{"m":{"sequence":"` + later + `","deleted":"`},
		{"ghost without a mark", Ghost, nil, doc(`{"n":1}`), false, document.Delete, document.Unchanged, ""},
		{"ghost, plain", Ghost, nil, marked, true, document.Delete, document.Unchanged, ""},
		{"different and unfenced", Different, want, marked, false, document.Put, document.Newer, `{"m":{"sequence":"` + later + `"},"n":2}`},
		{"unfenced", Unfenced, want, marked, false, document.Put, document.Newer, string(marked.Source)},
	} {
		low := tt.fence == document.Newer
		m := &Marks{Field: "m", ForgetDeleted: tt.forget, LeastVersion: func(s string) int64 {
			if low {
				return int64(len(s))
			}
			return 1
		}}
		got := (&run{Audit: Audit{Marks: m}}).remedy(Drift{Kind: tt.kind, Ref: ref}, tt.want, m.shown(tt.doc))
		if got.Action != tt.action || got.Fence != tt.fence || got.Ref() != ref || !strings.HasPrefix(string(got.Body), tt.body) || (got.Fence == document.Unchanged) != (got.Revision == at) {
			t.Errorf("%s: %+v %s", tt.name, got, got.Body)
		}
		if low && got.Version != int64(len(later)) {
			t.Errorf("version %d", got.Version)
		}
	}
}

// An item that cannot be projected hides which documents are its own: none is
// taken for a ghost then.
func TestFailedProjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.change("good", false, false)
		w.change("bad", false, false)
		w.change("gone", false, false)
		w.pipes.Wait()
		w.items["bad"] = row{rev: 1, text: "bad"}
		delete(w.items, "gone")
		a := w.audit()
		a.Write, a.MaxDeletes = w.Write, 1
		var told []string
		a.Found = func(d Drift) { told = append(told, d.String()) }
		r, err := a.Run(t.Context())
		if want := (Result{Items: 2, Documents: 1, Listed: 3, Failed: 1, Unchecked: 2}); err != nil || r != want || r.Clean() {
			t.Errorf("%+v, %v, want %+v", r, err, want)
		}
		if len(told) == 0 || told[0] != `failed: item {"id":{"S":"bad"}} of table things: a bad text` {
			t.Errorf("told %q", told)
		}
		for _, id := range []string{"bad", "gone"} {
			if _, ok := w.docs[id]; !ok {
				t.Errorf("document %s was deleted", id)
			}
		}
	})
}

// A tombstone that is newer than the item makes the index refuse the repair.
func TestRefusedRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.change("a", false, false)
		w.change("b", false, false)
		w.pipes.Wait()
		delete(w.docs, "a")
		w.buried["a"] = 9
		w.docs["b"] = doc{version: 9, body: "{}"}
		a := w.audit()
		a.Write = w.Write
		var told []string
		a.Found = func(d Drift) { told = append(told, d.String()) }
		r, err := a.Run(t.Context())
		want := Result{Items: 2, Documents: 2, Listed: 1, Missing: 1, Ahead: 1, Refused: 2}
		if err != nil || r != want {
			t.Errorf("%+v, %v, want %+v", r, err, want)
		}
		all := strings.Join(told, "\n")
		for _, line := range []string{
			"missing things/a (not repaired: the index does not take it",
			"ahead things/b: version 9, the item has 1 (not repaired: nothing here can tell",
		} {
			if !strings.Contains(all, line) {
				t.Errorf("%q is not in %q", line, all)
			}
		}
	})
}

// A failed write is reported, and the audit continues.
func TestFailedRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		for _, id := range []string{"a", "b"} {
			w.change(id, false, false)
		}
		w.pipes.Wait()
		clear(w.docs)
		clear(w.buried)
		a := w.audit()
		a.Write = func(ctx context.Context, op document.Op) error {
			if op.ID == "a" {
				return errors.New("the disk is full")
			}
			return w.Write(ctx, op)
		}
		r, err := a.Run(t.Context())
		if want := (Result{Items: 2, Documents: 2, Listed: 1, Missing: 2, Repaired: 1, Refused: 1}); err != nil || r != want {
			t.Errorf("%+v, %v, want %+v", r, err, want)
		}
	})
}

// A sample reads the same items for one seed, as many as it says, and looks for
// no ghosts.
func TestSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		for i := range 500 {
			w.change(fmt.Sprintf("k%04d", i), false, false)
		}
		w.pipes.Wait()
		delete(w.items, "k0000")
		chosen := func(seed uint64) (ids string, n int64) {
			a := w.audit()
			a.Sample, a.Seed = 0.1, seed
			a.Project = func(rec *sluice.Record) ([]document.Op, error) {
				ids += string(rec.Keys.Raw())
				return w.Project(rec)
			}
			r, err := a.Run(t.Context())
			if err != nil || !r.Clean() || r.Listed != 0 {
				t.Errorf("%+v, %v", r, err)
			}
			return ids, r.Items
		}
		first, n := chosen(7)
		again, _ := chosen(7)
		other, _ := chosen(8)
		if n < 25 || n > 75 {
			t.Errorf("%d of 500 items are 10 %%", n)
		}
		if first != again || first == other {
			t.Error("the seed does not decide which")
		}
	})
}

// An error of any function ends the audit, and names the operation.
func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		with func(*Audit)
		want string
	}{
		{"scan", func(a *Audit) {
			a.Scan = func(context.Context) iter.Seq2[*sluice.Record, error] {
				return func(yield func(*sluice.Record, error) bool) { yield(nil, broken) }
			}
		}, "reading the table: broken"},
		{"get", func(a *Audit) {
			a.Get = func(context.Context, []document.Ref) ([]document.Doc, error) { return nil, broken }
		}, "reading documents: broken"},
		{"short get", func(a *Audit) {
			a.Get = func(context.Context, []document.Ref) ([]document.Doc, error) { return nil, nil }
		}, "0 documents for 2 names"},
		{"read", func(a *Audit) {
			a.Read = func(context.Context, string, sluice.Item) (sluice.Item, error) { return sluice.Item{}, broken }
		}, `reading {"id":{"S":"a"}} of table things: broken`},
		{"list", func(a *Audit) {
			a.List = func(context.Context, string) iter.Seq2[document.Doc, error] {
				return func(yield func(document.Doc, error) bool) { yield(document.Doc{}, broken) }
			}
		}, "listing index things: broken"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(1)
			w.change("a", false, false)
			w.change("b", false, false)
			w.pipes.Wait()
			delete(w.docs, "a")
			a := w.audit()
			tt.with(&a)
			if _, err := a.Run(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
			}
		})
	}
}

// An audit that is stopped while it waits returns why.
func TestStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.change("a", false, false)
		w.pipes.Wait()
		clear(w.docs)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.audit().Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// More differences than are kept between two looks make the scan wait, and none
// is lost.
func TestEverythingIsMissing(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		const n = maxWaiting + 500
		a := Audit{
			Scan: func(context.Context) iter.Seq2[*sluice.Record, error] {
				return func(yield func(*sluice.Record, error) bool) {
					for i := range n {
						id := fmt.Sprint("k", i)
						if !yield(&sluice.Record{Table: "things", Keys: keyOf(id), New: itemOf(id, row{rev: 1})}, nil) {
							return
						}
					}
				}
			},
			Project: (&world{}).Project,
			Read: func(_ context.Context, _ string, key sluice.Item) (sluice.Item, error) {
				id, _ := key.Lookup("id")
				return itemOf(id.Str(), row{rev: 1}), nil
			},
			Get: func(_ context.Context, refs []document.Ref) ([]document.Doc, error) {
				return make([]document.Doc, len(refs)), nil
			},
		}
		r, err := a.Run(t.Context())
		if want := (Result{Items: n, Documents: n, Missing: n}); err != nil || r != want {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A change that left the document as it was had nothing to write: a document
// below its version may have come to where the item was.
func TestMovesOnBelowItsVersion(t *testing.T) {
	for _, tt := range []struct {
		name string
		docs []doc // at each look; the item is read right after
		rows []row
		want Result
	}{
		{"caught up", []doc{{1, "A", 0}, {4, "B", 0}, {6, "C", 0}}, []row{{5, "B", false}, {6, "C", false}, {6, "C", false}},
			Result{Items: 1, Documents: 1, Settled: 1}},
		{"stands still", []doc{{1, "A", 0}, {1, "A", 0}}, []row{{5, "B", false}, {6, "C", false}},
			Result{Items: 1, Documents: 1, Stale: 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &world{quiet: true}
			look := 0
			a := Audit{
				Scan: func(context.Context) iter.Seq2[*sluice.Record, error] {
					return func(yield func(*sluice.Record, error) bool) {
						yield(&sluice.Record{EventName: sluice.Snapshot, Table: "things", Keys: keyOf("a"), New: itemOf("a", tt.rows[0])}, nil)
					}
				},
				Project: w.Project,
				Read: func(context.Context, string, sluice.Item) (sluice.Item, error) {
					return itemOf("a", tt.rows[look-1]), nil
				},
				Get: func(_ context.Context, refs []document.Ref) ([]document.Doc, error) {
					d := tt.docs[look]
					look++
					return []document.Doc{{Ref: refs[0], Found: true, Version: d.version, Source: []byte(w.body("a", row{text: d.body}))}}, nil
				},
			}
			if r, err := a.Run(t.Context()); err != nil || r != tt.want {
				t.Errorf("%s: %+v, %v, want %+v", tt.name, r, err, tt.want)
			}
		})
	}
}
