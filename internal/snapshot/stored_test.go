package snapshot

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/state"
)

func TestList(t *testing.T) {
	m := state.NewMemory()
	const arn = "arn:aws:dynamodb:us-east-1:123456789012:table/orders"
	for _, name := range []string{"", "to/index"} {
		b := &book{store: m, app: "app", name: "backfill/" + name + "/" + arn, timeout: time.Second, saved: func(time.Duration, error) {}}
		if err := b.begin(t.Context(), head{Segments: 3}); err != nil {
			t.Fatal(err)
		}
		for i, n := range []int64{5, 7} {
			if err := b.put(t.Context(), b.segment(i), mark{Done: i == 0, sum: sum{Items: n}}); err != nil {
				t.Fatal(err)
			}
		}
		if name == "" {
			continue
		}
		if err := b.finish(t.Context(), sum{Items: 20}); err != nil {
			t.Fatal(err)
		}
	}
	// A segment that cannot be read hides nothing else.
	first := &book{store: m, app: "app", name: "backfill//" + arn}
	if err := m.PutValue(t.Context(), "app", first.segment(2), []byte("{")); err != nil {
		t.Fatal(err)
	}
	all, err := List(t.Context(), m, "app")
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if s := all[0]; s.Name != "" || s.TableARN != arn || s.Segments != 3 || s.Done != 1 || s.Items != 12 || !s.Finished.IsZero() || s.Begun.IsZero() {
		t.Errorf("one under way: %+v", s)
	}
	if s := all[1]; s.Name != "to/index" || s.TableARN != arn || s.Done != 3 || s.Items != 20 || s.Finished.IsZero() {
		t.Errorf("a finished one: %+v", s)
	}
}
