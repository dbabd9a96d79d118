//go:build integration

package warehouse

import (
	"fmt"
	"testing"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// The next largest build follows a deleted head build. The head remembers it, or the
// index finds it.
func TestDeletedHeads(t *testing.T) {
	w := newWorld(t)
	head := func(want string) {
		t.Helper()
		w.become("head "+want, func() string {
			heads, err := w.Heads(t.Context(), "p", "dev")
			got := fmt.Sprint(err)
			for _, h := range heads {
				got = fmt.Sprintf("%s %s %s %s", h.ID, h.CDN, h.Created, h.Updated)
			}
			if got != want {
				return got
			}
			return ""
		})
	}
	for day := 1; day <= 4; day++ {
		w.put("build", built(fmt.Sprintf("1.%d.0", day), "en-US", day))
	}
	const created = " 2026-01-01T00:00:00Z "
	head("p!dev!1.4.0!en-US https://cdn.example.com/1.4.0" + created + "2026-01-04T00:00:00Z")
	remove := func(day int) {
		t.Helper()
		if err := w.store.Delete(t.Context(), w.table("build"), buildKey(built(fmt.Sprintf("1.%d.0", day), "en-US", day))); err != nil {
			t.Fatal(err)
		}
	}
	remove(4)
	head("p!dev!1.3.0!en-US https://cdn.example.com/1.3.0" + created + "2026-01-03T00:00:00Z")
	row := item.Of(item.String("key", "p!dev"), item.String("locale", "en-US"))
	forget := dynamo.Update(w.table("build_head"), row, "SET history = :last").
		Value(":last", list([]buildEntry{{"2026-01-03T00:00:00Z", "p!dev!1.3.0!en-US", "1.3.0"}}))
	if err := w.store.Write(t.Context(), forget); err != nil {
		t.Fatal(err)
	}
	remove(3)
	head("p!dev!1.2.0!en-US https://cdn.example.com/1.2.0" + created + "2026-01-02T00:00:00Z")
	remove(1)
	remove(2)
	head("<nil>")
}
