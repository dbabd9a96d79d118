package meadowlark

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// The writer makes the items of the fixtures of their documents.
func TestWriterMakesTheFixtures(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var rev int64
		wr, err := writer.New(writer.Config{Store: w, Resources: Resources(), Now: func() time.Time { return time.UnixMicro(rev) }})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range Documents() {
			rev = d.Rev
			if err := wr.Create(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		got := w.Items(writer.DefaultTable)
		for _, want := range Fixtures() {
			i := slices.IndexFunc(got, func(it sluice.Item) bool { return it.Equal(want) })
			if i < 0 {
				t.Errorf("it did not make %s", want.Raw())
				continue
			}
			got = slices.Delete(got, i, i+1)
		}
		for _, it := range got {
			t.Errorf("it made %s, too", it.Raw())
		}
	})
}

func TestExactlyFourDocuments(t *testing.T) {
	for _, twice := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			w.Twice = twice
			w.put(t, Fixtures()...)
			w.run(t, time.Hour)
			if got := places(w); len(got) != 4 {
				t.Errorf("documents: %v", got)
			}
			for _, want := range expected {
				ref := document.Ref{Index: want.index, ID: want.id}
				body := `{"id":"` + want.id + `",` + want.fields + `,"info":` + string(item.AppendString(nil, want.info)) + want.after + `}`
				if diff := cmp.Diff(document.Doc{Ref: ref, Found: true, Version: want.version, Source: []byte(body)}, w.docs.Get(ref), cmpopts.IgnoreFields(document.Doc{}, "Revision")); diff != "" {
					t.Error(diff)
				}
			}
			if len(w.Sent) > 0 || len(w.alerts) > 0 {
				t.Errorf("sent %v, alerts %v", w.Sent, w.alerts)
			}
		})
	}
}

// places are the documents that were written at any time.
func places(w *world) map[document.Ref]bool {
	refs := map[document.Ref]bool{}
	for _, op := range w.docs.Writes.Values() {
		refs[op.Ref()] = true
	}
	return refs
}

func TestLateRecords(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, Fixtures()[school])
		inserted := w.Records()[0]
		w.Replay(inserted)
		w.put(t, renamed("New", 1638802062000001))
		modified := w.Records()[0]
		w.Replay(modified)
		w.run(t, time.Hour)
		name := func() string {
			d := w.doc(schoolIndex, schoolID)
			it, err := item.FromJSON(d.Source)
			if err != nil {
				return "nothing"
			}
			return fmt.Sprint(kit.Text(it, "nameOfInstitution"), " ", d.Version)
		}
		if got := name(); got != "New 1638802062000001" {
			t.Error(got)
		}
		w.Replay(inserted)
		w.run(t, time.Hour)
		if got := name(); got != "New 1638802062000001" || len(w.docs.Refused()) != 1 {
			t.Error(got, w.docs.Refused())
		}
		w.delete(t, Fixtures()[school])
		w.run(t, time.Hour)
		w.Replay(inserted, modified)
		w.run(t, time.Hour)
		if got := name(); got != "nothing" || len(w.docs.Refused()) != 3 {
			t.Error(got, w.docs.Refused())
		}

		// The writer comes back with a later rev, and so does the document.
		w.put(t, renamed("Newest", 1638802062000003))
		w.run(t, time.Hour)
		if got := name(); got != "Newest 1638802062000003" {
			t.Error(got)
		}

		// What was never there, or is gone, is deleted all the same.
		w.docs.ForgetDeletes()
		w.Replay(streamtest.Remove(writer.DefaultTable, Fixtures()[course], streamtest.WithKeys("pk", "sk")))
		w.run(t, time.Hour)
	})
}

func TestOutageLosesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.docs.Writes.FailFirst(3, errors.New("connection refused"))
		w.put(t, Fixtures()...)
		w.run(t, time.Hour)
		for _, want := range expected {
			if d := w.doc(want.index, want.id); d.Version != want.version {
				t.Errorf("%+v", d)
			}
		}
	})
}

func TestWhatADocumentMayHold(t *testing.T) {
	const huge = "12345678901234567890123456789012345678"
	entity := func(info string) string {
		return `{"pk":{"S":"TYPE#a.b#T"},"sk":{"S":"ID#x"},"rev":{"N":"7"},"ownerId":{"S":"me"},"info":{"M":` + info + `}}`
	}
	for _, tt := range []struct {
		name    string
		item    string
		body    string // or
		err     string // of what is parked
		dropped []string
	}{
		{
			name: "38 digits",
			item: entity(`{"n":{"N":"` + huge + `"},"l":{"L":[{"N":"-0.` + huge + `"}]}}`),
			body: `{"id":"x","n":` + huge + `,"l":[-0.` + huge + `],"info":"{\"id\":\"x\",\"l\":[-0.` + huge + `],\"n\":` + huge + `}","createdBy":"me"}`,
		},
		{
			name: "control characters",
			item: entity(`{"a\"\u0001":{"S":"\u0000\\ \"é😀"}}`),
			body: `{"id":"x","a\"\u0001":"\u0000\\ \"é😀","info":"{\"a\\\"\\u0001\":\"\\u0000\\\\ \\\"é😀\",\"id\":\"x\"}","createdBy":"me"}`,
		},
		{
			name:    "fields with reserved names",
			item:    entity(`{"id":{"S":"other"},"info":{"S":"mine"},"createdBy":{"S":"you"},"securityEdOrgId":{"S":"0"},"_unvalidated":{"BOOL":true},"a":{"M":{"id":{"S":"kept"}}}}`),
			body:    `{"id":"x","a":{"id":"kept"},"info":"{\"a\":{\"id\":\"kept\"},\"createdBy\":\"you\",\"id\":\"x\",\"info\":\"mine\",\"securityEdOrgId\":\"0\"}","createdBy":"me"}`,
			dropped: []string{"id", "info", "createdBy", "securityEdOrgId"},
		},
		{
			name: "it is empty",
			item: entity(`{}`),
			body: `{"id":"x","info":"{\"id\":\"x\"}","createdBy":"me"}`,
		},
		{name: "no document", item: `{"pk":{"S":"TYPE#a.b#T"},"sk":{"S":"ID#x"},"rev":{"N":"7"}}`, err: `no map in "info"`},
		{name: "it is no map", item: `{"pk":{"S":"TYPE#a.b#T"},"sk":{"S":"ID#x"},"rev":{"N":"7"},"info":{"S":"{}"}}`, err: `no map in "info"`},
		{name: "no rev", item: `{"pk":{"S":"TYPE#a.b#T"},"sk":{"S":"ID#x"},"info":{"M":{}}}`, err: `no attribute "rev"`},
		{name: "no index can have that name", item: `{"pk":{"S":"TYPE#a b"},"sk":{"S":"ID#x"},"rev":{"N":"7"},"info":{"M":{}}}`, err: "which OpenSearch refuses"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				it, err := item.Parse([]byte(tt.item))
				if err != nil {
					t.Fatal(err)
				}
				w.put(t, it)
				if tt.err != "" {
					if err := w.Run(t.Context(), w.router.Dispatch, w.Now()); err != nil {
						t.Fatal(err)
					}
					if len(w.Parked) != 1 || !strings.Contains(w.Parked[0].Error(), tt.err) {
						t.Errorf("parked %v, want %s", w.Parked, tt.err)
					}
					return
				}
				w.run(t, 0)
				if diff := cmp.Diff(tt.body, string(w.doc("type$a-b$t", "x").Source)); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(tt.dropped, w.dropped); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// Only documents and what they refer to are of interest.
func TestUnrouted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, it := range []sluice.Item{Fixtures()[guard], Fixtures()[assign], Fixtures()[tref]} {
			for _, rec := range []sluice.Record{streamtest.Insert("meadowlark", it), streamtest.Modify("meadowlark", it, it), streamtest.Remove("meadowlark", it)} {
				if rec.Keys = it.Only("pk", "sk"); w.router.Dispatch(t.Context(), &rec) != nil {
					t.Errorf("%s of %s", rec.EventName, it.Raw())
				}
			}
		}
		if len(places(w))+len(w.Sent)+len(w.alerts) > 0 {
			t.Error(places(w), w.Sent, w.alerts)
		}
	})
}

func TestBackfill(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, it := range Fixtures() {
			rec := streamtest.Snapshot(writer.DefaultTable, it, streamtest.WithKeys("pk", "sk"))
			if err := w.router.Dispatch(t.Context(), &rec); err != nil {
				t.Error(err)
			}
		}
		if len(places(w)) != 4 {
			t.Error(places(w))
		}
	})
}

func TestNewRouterWants(t *testing.T) {
	if _, err := NewRouter(Deps{}); err == nil || !strings.Contains(err.Error(), "want all of them") {
		t.Error(err)
	}
	if got := template(`a{b}\`); got != `a\{b\}\\` {
		t.Error(got)
	}
}
