package snapshot

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/releasetest"
	"github.com/sluicehq/sluice/state"
)

var update = flag.Bool("update", false, "write the progress of this release, unless it exists")

// The progress of all releases is read: of a backfill under way, and of a finished one.
func TestReleases(t *testing.T) {
	const orders, users = "backfill//arn:aws:dynamodb:us-east-1:123456789012:table/orders", "backfill/to/index/arn:aws:dynamodb:us-east-1:123456789012:table/users"
	created := time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC)
	bookOf := func(m *state.Memory, name string) *book {
		return &book{store: m, app: releasetest.App, name: name, timeout: time.Minute, saved: func(time.Duration, error) {}}
	}
	releasetest.Each(t, "progress.json", *update, func(t *testing.T, path string) {
		m := state.NewMemory()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{orders, users} {
			b := bookOf(m, name)
			must(b.begin(t.Context(), head{TableID: "id", Created: created, Segments: 3, Eventual: name == users}))
			must(b.put(t.Context(), b.segment(0), mark{Done: true, sum: sum{Items: 5, Bytes: 50, Units: 2.5}}))
			must(b.put(t.Context(), b.segment(1), mark{After: json.RawMessage(`{"pk":{"S":"o-1"}}`), sum: sum{Items: 7, Bytes: 70, Units: 3.5}}))
			if name == users {
				must(b.finish(t.Context(), sum{Items: 20}))
			}
		}
		values, err := m.ListValues(t.Context(), releasetest.App, "")
		must(err)
		text, err := json.MarshalIndent(values, "", "\t")
		must(err)
		must(os.WriteFile(path, text, 0o600))
	}, func(t *testing.T, path string) {
		m := state.NewMemory()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var values []state.Value
		if err := json.Unmarshal(text, &values); err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			if err := m.PutValue(t.Context(), releasetest.App, v.Name, v.Data); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{orders, users} {
			b := bookOf(m, name)
			if ok, err := b.load(t.Context(), nil); !ok || err != nil {
				t.Fatalf("%s: %v, %v", name, ok, err)
			}
			if why := b.head.differs(head{TableID: "id", Created: created, Segments: 3, Eventual: name == users}); why != "" {
				t.Errorf("%s: %s", name, why)
			}
		}
		b := bookOf(m, orders)
		_, loadErr := b.load(t.Context(), nil)
		marks, err := b.marks(t.Context())
		if loadErr != nil || err != nil || len(marks) != 3 || !marks[0].Done || marks[0].Items != 5 || marks[1].Done || marks[1].Units != 3.5 || marks[2].Items != 0 {
			t.Fatalf("%+v, %v", marks, err)
		}
		if key, err := marks[1].key(); err != nil || string(key.Raw()) != `{"pk":{"S":"o-1"}}` {
			t.Errorf("a segment continues after %s, %v", key.Raw(), err)
		}
		all, err := List(t.Context(), m, releasetest.App)
		if err != nil || len(all) != 2 || all[0].Done != 1 || all[0].Items != 12 || all[1].Items != 20 || all[1].Finished.IsZero() {
			t.Errorf("%+v, %v", all, err)
		}
	})
}
