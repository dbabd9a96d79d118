package warehouse

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

const (
	buildID  = "email!prod!2.1!en-US"
	buildDoc = `{"key":"email!prod!2.1","locale":"en-US","build_id":"email!prod!2.1!en-US","previous_build_id":"email!prod!2.0!en-US","env":"prod","name":"email","version":"2.1","fingerprints":["a","a.gz"],"artifacts":["a/email.js"]}`
)

// shown is a document without its mark; a tombstone is none.
func shown(d document.Doc) string {
	if mark, err := d.Mark(projection.DefaultMark); err != nil || mark.Deleted != "" {
		return ""
	}
	body, _, marked := strings.Cut(string(d.Source), `,"sluice":`)
	if marked {
		body += "}"
	}
	return body
}

// table is a Store with one item for the index.
type table struct {
	Store
	now sluice.Item
}

func (t table) Get(context.Context, string, sluice.Item) (sluice.Item, error) { return t.now, nil }

// After repeated records in any order, the document shows the last change.
func TestDocumentsAndRedeliveries(t *testing.T) {
	index := streamtest.NewIndex()
	mail := item.Of(item.String("name", "email"), item.String("version", "2.1.0"))
	changed := mail.With(item.String("main", "a.js"))
	packages, builds, err := projections(Deps{Write: index.Write, IndexPrefix: DefaultIndexPrefix, Store: table{now: changed}})
	if err != nil {
		t.Fatal(err)
	}
	b1 := Fixtures()[8].Item
	older := b1.With(item.String("version", "2.0"))
	key, name := streamtest.WithKeys("key", "locale"), streamtest.WithKeys("name")
	for _, tt := range []struct {
		name    string
		p       *projection.Projection
		ref     document.Ref
		records []sluice.Record
		want    string // after all of them
	}{
		{
			"build", builds, document.Ref{Index: "wrhs-build", ID: buildID},
			[]sluice.Record{streamtest.Insert("build", older, key), streamtest.Modify("build", older, b1, key)}, buildDoc,
		},
		{
			"package", packages, document.Ref{Index: "wrhs-package", ID: "email"},
			[]sluice.Record{streamtest.Insert("package", mail.With(item.String("version", "1")), name), streamtest.Modify("package", mail.With(item.String("version", "1")), mail, name)},
			`{"name":"email","version":"2.1.0"}`,
		},
		{
			"build that is gone", builds, document.Ref{Index: "wrhs-build", ID: buildID},
			[]sluice.Record{streamtest.Modify("build", older, b1, key), streamtest.Remove("build", b1, key)}, "",
		},
		{
			"backfill of what a record has written", packages, document.Ref{Index: "wrhs-package", ID: "email"},
			[]sluice.Record{streamtest.Modify("package", mail, changed, name), streamtest.Snapshot("package", mail, name)},
			`{"name":"email","version":"2.1.0","main":"a.js"}`,
		},
	} {
		handle := func(recs []sluice.Record) {
			for _, rec := range recs {
				if err := tt.p.Handle(t.Context(), &rec); err != nil && !sluice.IsSkip(err) {
					t.Errorf("%s: %v", tt.name, err)
				}
			}
		}
		is := func(when string) {
			if got := shown(index.Get(tt.ref)); got != tt.want {
				t.Errorf("%s, %s: %s\nwant %s", tt.name, when, got, tt.want)
			}
		}
		handle(tt.records)
		is("once")
		handle(tt.records)
		is("twice")
		slices.Reverse(tt.records)
		handle(tt.records)
		is("backwards")
	}
}
