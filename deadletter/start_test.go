package deadletter

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/boltstate"
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
		rec := recordtest.New(recordtest.Spec{Keys: fmt.Sprintf(`{"pk":{"S":"%d"}}`, i), New: image, Sequence: recordtest.Sequence(i + 1)})
		if err := b.Park(tb.Context(), &rec, failure("r")); err != nil {
			tb.Fatal(err)
		}
	}
	return store
}

// headed are letters whose beginnings can be read alone.
type headed struct{ *counted }

func (h headed) ListLetterHeads(ctx context.Context, app, after string, limit, most int) ([]state.Letter, error) {
	all, err := h.Letters.ListLetters(ctx, app, after, limit)
	for i, l := range all {
		all[i].Data = l.Data[:min(most, len(l.Data))]
		h.bytes += len(all[i].Data)
	}
	return all, err
}

// A process that parks single records reads the ids of the letters at its start, and
// the gaps.
func TestStartReadsNoLetters(t *testing.T) {
	for _, n := range []int{1, 1000} {
		store := largeLetters(t, n, 100)
		b := NewBox(headed{store}, "app")
		parkGap(t, b, gap("shard", 5))
		if got := gaps(t, b); len(got) != 1 {
			t.Errorf("gaps: %v", got)
		}
		if err := b.Handled(t.Context(), record("a", 999999), "r"); err != nil {
			t.Error(err)
		}
		if store.letters > 1 || store.bytes > 4096 {
			t.Errorf("of %d letters, %d were read, %d bytes; want the gap alone", n, store.letters, store.bytes)
		}
	}
}

// inFile are letters in a state file, of which those that are read are counted.
type inFile struct {
	*boltstate.Store
	counted
}

func (f *inFile) GetLetter(ctx context.Context, app, id string) ([]byte, bool, error) {
	data, ok, err := f.Store.GetLetter(ctx, app, id)
	f.letters, f.bytes = f.letters+1, f.bytes+len(data)
	return data, ok, err
}

func (f *inFile) ListLetters(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	return f.counted.ListLetters(ctx, app, after, limit)
}

func (f *inFile) LabelLetters(ctx context.Context, app string, label func(string, []byte) []byte) error {
	return f.Store.LabelLetters(ctx, app, func(id string, data []byte) []byte {
		f.letters, f.bytes = f.letters+1, f.bytes+len(data)
		return label(id, data)
	})
}

func openInFile(tb testing.TB) *inFile {
	tb.Helper()
	s, err := boltstate.Open(filepath.Join(tb.TempDir(), "state.db"), boltstate.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return &inFile{Store: s, counted: counted{Letters: s}}
}

// A process that parks whole items reads labels at its start, and no letter; of
// letters that an older program stored, each once.
func TestStartReadsLabels(t *testing.T) {
	store := openInFile(t)
	rec := record("a", 10)
	message := sluice.DecodeRecord([]byte("?"))
	b := NewBox(store, "app")
	park(t, b, rec, "r")
	park(t, b, record("b", 11), "")
	park(t, b, message, "r")
	parkGap(t, b, gap("shard", 5))
	holds := func(when string, letters int) {
		t.Helper()
		store.letters = 0
		b := NewBox(store, "app")
		for _, tt := range []struct {
			rec   *sluice.Record
			route string
			want  bool
		}{
			{record("a", 20), "r", true},
			{record("a", 20), "s", false},
			{record("a", 9), "r", false},
			{record("b", 20), "s", true},
			{record("c", 20), "r", false},
			{itemOn(strings.Replace(recordtest.ARN, "table/test", "table/rest", 1), "a", 20), "r", false},
		} {
			if held, err := b.Holds(t.Context(), tt.rec, tt.route); held != tt.want || err != nil {
				t.Errorf("%s: %s %s for %s: %v, %v", when, tt.rec.Keys.Raw(), tt.rec.Sequence, tt.route, held, err)
			}
		}
		if store.letters != letters {
			t.Errorf("%s: %d letters were read, want %d", when, store.letters, letters)
		}
	}
	holds("labelled", 0)
	id := b.ID(rec, "r")
	data, _, err := store.Store.GetLetter(t.Context(), "app", id)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.PutLetter(t.Context(), "app", id, data); err != nil { // without a label
		t.Fatal(err)
	}
	holds("stored by another program", 1)
	holds("labelled since", 0)
	if err := store.PutLabelled(t.Context(), "app", id, data, []byte{labelVersion + 1}); err != nil {
		t.Fatal(err)
	}
	holds("with a label of a newer program", 1)
	if err := store.PutLetter(t.Context(), "app", id, []byte("?")); err != nil {
		t.Fatal(err)
	}
	if err := NewBox(store, "app").Load(t.Context()); err == nil || !strings.Contains(err.Error(), id) {
		t.Errorf("a letter that cannot be read: %v", err)
	}
}

// A label that is not whole, or longer, is none.
func TestLabelIsWhole(t *testing.T) {
	l := labelOf("route", record("a", 10))
	data := l.append(nil)
	if got, ok := parseLabel(data); !ok || got.route != l.route || got.stream != l.stream || got.sequence != l.sequence || got.keys.Hash() != l.keys.Hash() {
		t.Errorf("%+v, %v; want %+v", got, ok, l)
	}
	for n := range data {
		if got, ok := parseLabel(data[:n]); ok {
			t.Errorf("%d of %d bytes: %+v", n, len(data), got)
		}
	}
	if got, ok := parseLabel(append(data, 0)); ok {
		t.Errorf("a byte more: %+v", got)
	}
}

// BenchmarkLoad reads which items are held, as a process that parks whole items
// does at its start, of a store that keeps no labels.
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
