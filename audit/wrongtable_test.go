package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice/document"
)

// Another table than the index's has items, too. Their documents are missing, and a
// repair writes them. They are no reason to delete those that were there.
func TestBrakeOfAnotherTable(t *testing.T) {
	for _, items := range []int{1, 10, 300} {
		synctest.Test(t, func(t *testing.T) {
			w := ghosts(0, 10)
			was := maps.Clone(w.docs)
			for i := range items {
				w.items[fmt.Sprintf("x%04d", i)] = row{rev: 1}
			}
			a := w.audit()
			a.MaxDeletes, a.Indices = 1000, []string{"things"}
			dry, err := a.Run(t.Context())
			if err != nil || dry.Brake == nil || !dry.Brake.MostlyEmpty && !dry.Brake.Empty {
				t.Errorf("%d items: a dry run says %+v, %v", items, dry.Brake, err)
			}
			a.Write = w.Write
			_, err = a.Run(t.Context())
			if brake, _ := errors.AsType[*BrakeError](err); brake == nil || brake.Ghosts != 10 || brake.Documents != 10 {
				t.Errorf("%d items: %v", items, err)
			}
			for id := range was {
				if _, there := w.docs[id]; !there {
					t.Errorf("%d items: %s was deleted", items, id)
				}
			}
		})
	}
}

// More documents than can be looked into are no reason to take the table for the
// right one.
func TestBrakeOfManyDocuments(t *testing.T) {
	w := ghosts(1, 0)
	a := w.audit()
	a.MaxDeletes, a.Indices = 1_000_000, []string{"things"}
	a.Settle = 1
	w.docs["k0000"] = doc{1, w.body("k0000", row{rev: 1}), 0}
	a.Get = func(_ context.Context, refs []document.Ref) (docs []document.Doc, err error) {
		for _, ref := range refs {
			docs = append(docs, document.Doc{Ref: ref, Found: true, Version: 1, Source: []byte(w.docs["k0000"].body)})
		}
		return docs, nil
	}
	a.List = func(context.Context, string) iter.Seq2[document.Doc, error] {
		return func(yield func(document.Doc, error) bool) {
			for i := range 2*maxUnseen + 2 {
				if !yield(document.Doc{Ref: document.Ref{Index: "things-000001", ID: fmt.Sprint(i)}, Found: true, Version: 1}, nil) {
					return
				}
			}
		}
	}
	a.Write = func(_ context.Context, op document.Op) error {
		t.Fatalf("%v", op)
		return nil
	}
	_, err := a.Run(t.Context())
	if brake, _ := errors.AsType[*BrakeError](err); brake == nil || !brake.MostlyEmpty {
		t.Error(err)
	}
}
