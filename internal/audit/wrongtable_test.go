package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/localtest"
)

// foreign is an index of a table's n documents beside another table, which has
// items.
func foreign(n, items int) *world {
	w := ghosts(0, n)
	for i := range items {
		w.items[fmt.Sprintf("x%04d", i)] = row{rev: 1}
	}
	return w
}

// A repair of another table than the index's writes nothing and deletes nothing,
// however often it is run, unless the tables are said to be the right ones.
func TestAnotherTable(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, tt := range []struct{ documents, items int }{{10, 1}, {10, 10}, {46, 1000}, {10, 1500}} {
		synctest.Test(t, func(t *testing.T) {
			w := foreign(tt.documents, tt.items)
			was := maps.Clone(w.docs)
			a := w.audit()
			a.MaxDeletes, a.Indices = 1000, []string{"things"}
			want := ApartError{Table: "things", Wanted: int64(tt.items), Strangers: int64(tt.documents)}
			dry, err := a.Run(t.Context())
			if err != nil || dry.Apart == nil || *dry.Apart != want {
				t.Errorf("%+v: a dry run says %+v, %v", tt, dry.Apart, err)
			}
			a.Write = w.Write
			for range 2 {
				_, err := a.Run(t.Context())
				if apart, _ := errors.AsType[*ApartError](err); apart == nil || *apart != want {
					t.Errorf("%+v: %v", tt, err)
				}
				if !maps.Equal(w.docs, was) {
					t.Fatalf("%+v: there are %d documents, of %d", tt, len(w.docs), len(was))
				}
			}
			a.TrustTables = true
			r, err := a.Run(t.Context())
			if err != nil || r.Apart != nil || r.Repaired != int64(tt.items+tt.documents) || len(w.docs) != tt.items {
				t.Errorf("%+v: %+v, %v", tt, r, err)
			}
		})
	}
}

// The right table has a new index, or lost documents, or items that were just added,
// or an index in which some ghosts are.
func TestRightTable(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, tt := range []struct {
		name                   string
		there, missing, ghosts int
		want                   bool
	}{
		{"a new index", 0, 1500, 0, true},
		{"items were added", 46, 1500, 0, true},
		{"items were added, and a ghost is there", 46, 1500, 1, true},
		{"as many ghosts as documents", 5, 100, 5, true},
		{"more ghosts than documents", 5, 100, 6, false},
		{"more ghosts than documents, and few are missing", 5, 5, 6, true},
		{"no document has an item", 0, 40, 2, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := ghosts(tt.there, tt.ghosts)
			for i := range tt.missing {
				w.items[fmt.Sprintf("m%04d", i)] = row{rev: 1}
			}
			a := w.audit()
			a.Write, a.Indices = w.Write, []string{"things"}
			r, err := a.Run(t.Context())
			if apart := errors.As(err, new(*ApartError)); apart == tt.want || r.Missing > 0 != tt.want {
				t.Errorf("%s: %+v, %v", tt.name, r, err)
			}
		})
	}
}

// Items that cannot be projected hide which documents are theirs. They do not make
// the table the right one.
func TestAnotherTableWithABadItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := foreign(10, 20)
		w.items["bad"] = row{rev: 1, text: "bad"}
		a := w.audit()
		a.Write, a.Indices = w.Write, []string{"things"}
		_, err := a.Run(t.Context())
		if !errors.As(err, new(*ApartError)) || len(w.docs) != 10 {
			t.Errorf("%v, %d documents", err, len(w.docs))
		}
	})
}

// One of two tables is the wrong one.
func TestOneOfTwoTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := foreign(10, 20)
		for i := range 1100 {
			id := fmt.Sprintf("y%04d", i)
			w.items[id] = row{rev: 1}
			w.docs[id] = doc{1, w.body(id, row{rev: 1}), 0}
		}
		a := w.audit()
		a.Write, a.Indices = w.Write, []string{"things"}
		a.Read = func(ctx context.Context, _ string, key sluice.Item) (sluice.Item, error) {
			return w.Read(ctx, "things", key)
		}
		scan := a.Scan
		a.Scan = func(ctx context.Context) iter.Seq2[*sluice.Record, error] {
			return func(yield func(*sluice.Record, error) bool) {
				for rec, err := range scan(ctx) {
					if id, _ := rec.Keys.Lookup("id"); strings.HasPrefix(id.Str(), "x") {
						rec.Table = "others"
					}
					if !yield(rec, err) {
						return
					}
				}
			}
		}
		_, err := a.Run(t.Context())
		if apart, _ := errors.AsType[*ApartError](err); apart == nil || apart.Table != "others" || len(w.docs) != 1110 {
			t.Errorf("%v, %d documents", err, len(w.docs))
		}
	})
}

// A sample of the items fills a new index.
func TestSampleOfANewIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := foreign(0, 20)
		a := w.audit()
		a.Write, a.Indices, a.Sample, a.Seed = w.Write, []string{"things"}, 0.5, 1
		if r, err := a.Run(t.Context()); err != nil || r.Repaired == 0 || r.Repaired != r.Items {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// Without a list of all documents, only a sample can confirm the table.
func TestAnotherTableWithoutAList(t *testing.T) {
	for name, with := range map[string]func(*Audit){
		"no list": func(a *Audit) { a.List = nil },
		"sample":  func(a *Audit) { a.Sample = 0.5 },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := foreign(10, 20)
			a := w.audit()
			a.Write, a.Indices = w.Write, []string{"things"}
			with(&a)
			_, err := a.Run(t.Context())
			if apart, _ := errors.AsType[*ApartError](err); apart == nil || apart.Strangers != -1 || len(w.docs) != 10 {
				t.Errorf("%s: %v, %d documents", name, err, len(w.docs))
			}
		})
	}
}

// Documents that do not fit into memory have no item either: they do not make the
// table the right one.
func TestBrakeOfManyDocuments(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for items, more := range map[int]int{1: 2*maxUnseen + 2, maxUnseen: maxUnseen + 1} {
		a := Audit{
			Scan: func(context.Context) iter.Seq2[*sluice.Record, error] {
				return func(yield func(*sluice.Record, error) bool) {
					for i := range items {
						if !yield(&sluice.Record{Table: "things", Keys: sluice.Item{}, EventID: fmt.Sprint(i)}, nil) {
							return
						}
					}
				}
			},
			Project: func(rec *sluice.Record) ([]document.Op, error) {
				return []document.Op{{Action: document.Put, Index: "things", ID: rec.EventID, Fence: document.Newer, Version: 1, Body: []byte("{}")}}, nil
			},
			Read: func(context.Context, string, sluice.Item) (sluice.Item, error) { return sluice.Item{}, nil },
			Get: func(_ context.Context, refs []document.Ref) (docs []document.Doc, err error) {
				for _, ref := range refs {
					docs = append(docs, document.Doc{Ref: ref, Found: true, Version: 1, Source: []byte("{}")})
				}
				return docs, nil
			},
			List: func(context.Context, string) iter.Seq2[document.Doc, error] {
				return func(yield func(document.Doc, error) bool) {
					for i := range items + more {
						if !yield(document.Doc{Ref: document.Ref{Index: "things", ID: fmt.Sprint(i)}, Found: true, Version: 1}, nil) {
							return
						}
					}
				}
			},
			Write: func(_ context.Context, op document.Op) error {
				t.Fatalf("%v", op)
				return nil
			},
			MaxDeletes: 1_000_000, Settle: 1,
		}
		_, err := a.Run(t.Context())
		if brake, _ := errors.AsType[*BrakeError](err); brake == nil || !brake.MostlyEmpty || brake.Ghosts != maxUnseen || brake.Unread != int64(more-maxUnseen) {
			t.Errorf("%d items: %v", items, err)
		}
	}
}
