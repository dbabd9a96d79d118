package bench

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/sluicehq/sluice/internal/benchdata"
	"github.com/sluicehq/sluice/router"
)

var kinds = []struct {
	name    string
	kind    benchdata.Kind
	records int
}{
	{"modify1500", benchdata.Modify, 100},
	{"keys300", benchdata.KeysOnly, 100},
	{"large50k", benchdata.Large, 20},
}

// newWay returns a Way that knows the type of records without images too.
func newWay() *Way {
	return NewWay(router.TypeFrom(router.Chain(router.Attribute("entityType"), router.Table(nil))))
}

// The ways compared must do the same.
func TestWaysAgree(t *testing.T) {
	for _, k := range kinds {
		event, w := benchdata.Event(k.kind, k.records), newWay()
		usual, err := UsualRoute(event)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := w.Route(event)
		if err != nil {
			t.Fatal(err)
		}
		if ours != usual || ours == 0 && k.name != "keys300" && k.name != "large50k" {
			t.Errorf("%s: %d records routed, the usual way %d", k.name, ours, usual)
		}
		s := NewStream(benchdata.GetRecords(k.kind, k.records))
		defer s.Close()
		if usual, err = s.UsualRoute(t.Context()); err != nil || usual != ours {
			t.Errorf("%s: %d records routed by the SDK (%v), wanted %d", k.name, usual, err, ours)
		}
		if n, err := s.Route(t.Context(), w); err != nil || n != ours {
			t.Errorf("%s: %d records routed from a stream (%v), wanted %d", k.name, n, err, ours)
		}
		usualDocs, ourDocs := documents(t, UsualProject, event), documents(t, w.Project, event)
		if len(usualDocs) != ours || len(ourDocs) != ours {
			t.Errorf("%s: %d and %d records projected, wanted %d", k.name, len(ourDocs), len(usualDocs), ours)
		}
		for i, doc := range ourDocs {
			if !reflect.DeepEqual(doc, usualDocs[i]) {
				t.Fatalf("%s: document %d is\n%v\nthe usual way\n%v", k.name, i, doc, usualDocs[i])
			}
		}
	}
}

// documents returns what project makes of the event, read again.
func documents(t *testing.T, project func([]byte, func([]byte)) (int, error), event []byte) (docs []any) {
	t.Helper()
	n, err := project(event, func(doc []byte) {
		var x any
		if err := json.Unmarshal(doc, &x); err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		docs = append(docs, x)
	})
	if err != nil || n != len(docs) {
		t.Fatalf("%d documents of %d records: %v", len(docs), n, err)
	}
	return docs
}

func BenchmarkLambda(b *testing.B) {
	w := newWay()
	discard := func([]byte) {}
	for _, k := range kinds {
		event := benchdata.Event(k.kind, k.records)
		for _, way := range []struct {
			name string
			run  func() (int, error)
		}{
			{"route/usual", func() (int, error) { return UsualRoute(event) }},
			{"route/sluice", func() (int, error) { return w.Route(event) }},
			{"project/usual", func() (int, error) { return UsualProject(event, discard) }},
			{"project/sluice", func() (int, error) { return w.Project(event, discard) }},
		} {
			b.Run(k.name+"/"+way.name, func(b *testing.B) { measure(b, k.records, len(event), way.run) })
		}
	}
}

func BenchmarkGetRecords(b *testing.B) {
	w := newWay()
	for _, k := range kinds {
		body := benchdata.GetRecords(k.kind, k.records)
		s := NewStream(body)
		b.Run(k.name+"/usual", func(b *testing.B) {
			measure(b, k.records, len(body), func() (int, error) { return s.UsualRoute(b.Context()) })
		})
		b.Run(k.name+"/sluice", func(b *testing.B) {
			measure(b, k.records, len(body), func() (int, error) { return s.Route(b.Context(), w) })
		})
		s.Close()
	}
}

func measure(b *testing.B, records, size int, run func() (int, error)) {
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := run(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*records), "ns/record")
}
