package reindex

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
)

// Changes that leave a document as it was are not written: the current index
// then has it in a lower version than the table, and than the new index.
func TestChangesThatAreNotWritten(t *testing.T) {
	for _, tt := range []struct{ newBodies, live bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 12, 4)
			w.quiet = true
			for range 4 {
				for i := range 30 {
					w.change(fmt.Sprint("p", i), false)
				}
			}
			for i := range 15 {
				w.change(fmt.Sprint("p", i), false) // 5: and 4 was written
			}
			w.pending.Wait()
			stop := func() {}
			if tt.live {
				stop = w.live(60)
			}
			r := w.reindex()
			r.NewBodies = tt.newBodies
			c, err := r.Start(t.Context())
			if err != nil || !c.Equal() {
				t.Fatalf("%v, %v", c, err)
			}
			for _, step := range []func(context.Context) error{
				func(ctx context.Context) error { return r.Swap(ctx, false) },
				r.Rollback,
				func(ctx context.Context) error { return r.Swap(ctx, false) },
			} {
				if err := step(t.Context()); err != nil {
					t.Fatal(err)
				}
				st, err := r.Status(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if c, err := r.withDefaults().compare(t.Context(), st); err != nil || !c.Equal() {
					t.Fatalf("%v, %v", c, err)
				}
			}
			stop()
			w.check("products-000001")
			w.check("products-000002")
		})
	}
}

// That versions tell nothing is remembered from the start on.
func TestVersionsThatTellNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := started(t, 13)
		for i := range 30 {
			w.change(fmt.Sprint("p", i), false)
		}
		w.pending.Wait()
		r := w.reindex()
		r.NewBodies, r.MarkField = true, "sluice"
		r.Project = func(rec *sluice.Record) ([]document.Op, error) {
			ops, err := w.project(rec)
			for i := range ops {
				ops[i].Version = 1
			}
			return ops, err
		}
		if c, err := r.Start(t.Context()); err != nil || !c.Equal() {
			t.Fatalf("%v, %v", c, err)
		}
		if err := (Reindex{Alias: r.Alias, Cluster: r.Cluster, Get: r.Get, NewBodies: true}).Swap(t.Context(), false); err != nil {
			t.Error(err)
		}
	})
}

func TestSame(t *testing.T) {
	doc := func(version int64, body string) document.Doc {
		return document.Doc{Found: version > 0, Version: version, Source: []byte(body)}
	}
	seen := func(current, other int64) pending { return pending{current: current, other: other, looked: true} }
	for _, tt := range []struct {
		name           string
		before         pending
		current, other document.Doc
		r              Reindex
		same           bool
	}{
		{"equal", pending{}, doc(1, "a"), doc(1, "a"), Reindex{}, true},
		{"equal in another order", pending{}, doc(1, `{"a":1,"b":2}`), doc(1, `{"b":2.0,"a":1}`), Reindex{}, true},
		{"both gone", pending{}, doc(0, ""), doc(0, ""), Reindex{}, true},
		{"one gone", seen(1, 0), doc(1, "a"), doc(0, ""), Reindex{}, false},
		{"another version of one body", pending{}, doc(2, "1"), doc(1, "1"), Reindex{}, true},
		{"another version", pending{}, doc(2, "2"), doc(1, "1"), Reindex{}, false},
		{"which stands still", seen(2, 1), doc(2, "2"), doc(1, "1"), Reindex{}, false},
		{"which moves on", seen(2, 1), doc(4, "4"), doc(3, "3"), Reindex{}, true},
		{"while it was away", seen(0, 1), doc(4, "4"), doc(3, "3"), Reindex{}, false},
		{"another body", pending{}, doc(1, "1"), doc(1, "2"), Reindex{}, false},
		{"which moves on in equal versions", seen(1, 1), doc(2, "1"), doc(2, "2"), Reindex{}, false},
		{"which is meant", pending{}, doc(1, "1"), doc(1, "2"), Reindex{NewBodies: true}, true},
		{"of which the new one is newer", pending{}, doc(1, "1"), doc(2, "2"), Reindex{NewBodies: true}, true},
		{"of which the old one is newer", pending{}, doc(2, "1"), doc(1, "2"), Reindex{NewBodies: true}, false},
		{"and moves on", seen(2, 1), doc(4, "1"), doc(3, "2"), Reindex{NewBodies: true}, true},
		{"which tells nothing", pending{}, doc(2, "1"), doc(1, "2"), Reindex{NewBodies: true, MarkField: "sluice"}, true},
		{"versions that say nothing", pending{}, doc(2, "1"), doc(1, "1"), Reindex{MarkField: "sluice"}, true},
		{"and another body", pending{}, doc(2, "1"), doc(1, "2"), Reindex{MarkField: "sluice"}, false},
		{"which stands still, too", seen(2, 1), doc(2, "1"), doc(1, "2"), Reindex{MarkField: "sluice"}, false},
	} {
		if _, same := tt.r.same(tt.before, tt.current, tt.other, false); same != tt.same {
			t.Errorf("%s: %v", tt.name, same)
		}
		before := pending{current: tt.before.other, other: tt.before.current, looked: tt.before.looked}
		if _, same := tt.r.same(before, tt.other, tt.current, true); same != tt.same {
			t.Errorf("%s, swapped: %v", tt.name, same)
		}
	}
}

// The error names up to ten different documents, with their places.
func TestDifferencesInWords(t *testing.T) {
	c := Comparison{Current: "a-1", Other: "a-2", Counts: [2]int64{7, 8}, Sampled: 8, Differences: []Difference{
		{ID: "new", Other: 3}, {ID: "old", Current: 4}, {ID: "both", Current: 5, Other: 6}, {ID: "body", Current: 7, Other: 7, Bodies: true, Path: "/n"},
	}}
	want := `reindex: the two indices differ, by dead letters, by changes that are not handled yet, or since a writer does not write by reindex.Writer: a-1 has 7 documents, a-2 8; 8 compared, 4 differ
  new: not in a-1, version 3 in a-2
  old: version 4 in a-1, not in a-2
  both: version 5 in a-1, 6 in a-2
  body: version 7 has two bodies, which part at /n`
	if got := (&NotEqualError{Comparison: c}).Error(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	c.Differences = make([]Difference, 11)
	if got := c.String(); strings.Count(got, "\n") != 11 || !strings.HasSuffix(got, "\n  …") {
		t.Error(got)
	}
}

// A writer that knows nothing of a second index is found by the comparison, and
// keeps the alias from being swapped.
func TestForeignWriter(t *testing.T) {
	for _, deletes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := started(t, 5)
			r := w.reindex()
			c, err := r.Start(t.Context())
			if err != nil || !c.Equal() || c.Sampled != 30 || c.Counts != [2]int64{30, 30} {
				t.Fatalf("%v, %v", c, err)
			}
			op := document.Op{Action: document.Put, Index: "products-000001", ID: "p3", Fence: document.Newer, Version: 50, Body: []byte(`{}`)}
			want := "p3: version 50 in products-000001, 1 in products-000002"
			if deletes {
				op.Action, op.Body = document.Delete, nil
				want = "products-000001 has 29 documents, products-000002 30"
			}
			if err := w.write(t.Context(), op); err != nil {
				t.Fatal(err)
			}
			var differ *NotEqualError
			if err := r.Swap(t.Context(), false); !errors.As(err, &differ) || !strings.Contains(err.Error(), want) {
				t.Fatalf("%v, want %q", err, want)
			}
			if w.aliases["products"] != "products-000001" {
				t.Error("swapped all the same")
			}
			if err := r.Swap(t.Context(), true); err != nil || w.aliases["products"] != "products-000002" {
				t.Errorf("by force: %v", err)
			}
		})
	}
}
