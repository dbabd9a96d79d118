package deadletter

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/state"
)

// counted counts the letters that are read, and their bytes.
type counted struct {
	state.Letters
	letters, bytes int
}

func (c *counted) ListLetters(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	all, err := c.Letters.ListLetters(ctx, app, after, limit)
	for _, l := range all {
		c.letters, c.bytes = c.letters+1, c.bytes+len(l.Data)
	}
	return all, err
}

func largeLetters(tb testing.TB, n, size int) *counted {
	tb.Helper()
	store := &counted{Letters: state.NewMemory()}
	b := NewBox(store, "app")
	for i := range n {
		image := fmt.Sprintf(`{"pk":{"S":"%d"},"text":{"S":"%s"}}`, i, strings.Repeat("x", size))
		rec := recordtest.New(recordtest.Spec{Keys: fmt.Sprintf(`{"pk":{"S":"%d"}}`, i), New: image, Sequence: fmt.Sprint(i + 1)})
		if err := b.Park(tb.Context(), &rec, failure("r")); err != nil {
			tb.Fatal(err)
		}
	}
	return store
}

// A process that parks single records reads one letter at its start, and the
// gaps, however many letters there are.
func TestStartReadsOneLetter(t *testing.T) {
	for _, n := range []int{1, 1000} {
		store := largeLetters(t, n, 100)
		b := NewBox(store, "app")
		parkGap(t, b, gap("shard", "5"))
		if got := gaps(t, b); len(got) != 1 {
			t.Errorf("gaps: %v", got)
		}
		if err := b.Handled(t.Context(), record("a", "999999"), "r"); err != nil {
			t.Error(err)
		}
		if store.letters != 2 || store.bytes > 4096 {
			t.Errorf("of %d letters, %d were read, %d bytes; want one and the gap", n, store.letters, store.bytes)
		}
	}
}

// BenchmarkLoad reads which items are held, as a process that parks whole items
// does at its start.
func BenchmarkLoad(b *testing.B) {
	const letters, size = 1000, 2000
	store := largeLetters(b, letters, size)
	b.SetBytes(letters * size)
	for b.Loop() {
		if err := NewBox(store, "app").Load(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
