package deadletter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/statetest"
)

func item(key, seq string) *sluice.Record {
	rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"` + key + `"}}`, Sequence: seq, Shard: "shard"})
	return &rec
}

func park(t *testing.T, b *Box, rec *sluice.Record, route string) string {
	t.Helper()
	if err := b.Park(t.Context(), rec, failure(route)); err != nil {
		t.Fatal(err)
	}
	return id(rec, route)
}

func list(t *testing.T, b *Box) []string {
	t.Helper()
	entries, _, err := b.List(t.Context(), "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Table+"/"+string(e.Sequence)+"/"+e.Route)
	}
	return got
}

func TestBoxParks(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	rec := item("a", "10")
	one := park(t, b, rec, "r")
	park(t, b, rec, "r") // again, by a restart
	park(t, b, rec, "s")
	park(t, b, item("b", "9"), "r")
	got, want := list(t, b), []string{"test/10/r", "test/10/s", "test/9/r"}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Fatalf("entries: %v, want %v", got, want)
	}
	e, err := b.Get(t.Context(), one)
	if err != nil || e.First.Error != "first <error>" || e.Attempts != 8 || string(e.Raw) != string(rec.Raw()) {
		t.Fatalf("Get: %+v, %v", e, err)
	}
	if err := b.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), one); err != nil {
		t.Fatalf("second Delete: %v", err)
	}
	if _, err := b.Get(t.Context(), one); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), one) {
		t.Fatalf("Get of a deleted one: %v", err)
	}
}

// F079: what cannot be decoded is parked whole, with its position.
func TestUndecodableIsParked(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	rec := undecodable(t, `{"eventID":"e","eventName":"INSERT","dynamodb":{"SequenceNumber":"77","Keys":{"pk":{"X":"?"}}}}`)
	f := failure("")
	f.First = rec.Err()
	if err := b.Park(t.Context(), &rec, f); err != nil {
		t.Fatal(err)
	}
	e, err := b.Get(t.Context(), id(&rec, ""))
	if err != nil || e.Sequence != "77" || e.StreamARN != recordtest.ARN || e.ShardID != "shard" ||
		!strings.Contains(e.First.Error, "undecodable") || string(e.Raw) != string(rec.Raw()) {
		t.Fatalf("%+v, %v", e, err)
	}
}

func TestListInPages(t *testing.T) {
	m := state.NewMemory()
	b := NewBox(m, "app")
	for i := range 5 {
		park(t, b, item("a", fmt.Sprint(i+1)), "r")
	}
	if err := m.PutLetter(t.Context(), "app", "zz", []byte(`{"version":9,"id":"zz"}`)); err != nil {
		t.Fatal(err)
	}
	var seen []string
	var failed error
	for after := ""; ; {
		entries, last, err := b.List(t.Context(), after, 2)
		failed = errors.Join(failed, err)
		for _, e := range entries {
			seen = append(seen, string(e.Sequence))
		}
		if last == "" {
			break
		}
		after = last
	}
	if want := []string{"1", "2", "3", "4", "5"}; !slices.Equal(seen, want) {
		t.Errorf("%v, want %v", seen, want)
	}
	if failed == nil || !strings.Contains(failed.Error(), "dead letter zz is of version 9") {
		t.Errorf("the newer entry is not named: %v", failed)
	}
}

func TestHolds(t *testing.T) {
	m := state.NewMemory()
	b := NewBox(m, "app")
	if held, err := b.Holds(t.Context(), item("a", "20"), "r"); held || err != nil {
		t.Fatalf("an empty box: %v, %v", held, err)
	}
	onRoute := park(t, b, item("a", "10"), "r")
	forAll := park(t, b, item("b", "10"), "")
	other := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, Sequence: "20", ARN: strings.Replace(recordtest.ARN, "2024", "2025", 1)})
	check := func(t *testing.T, b *Box, a, all bool) {
		t.Helper()
		for _, tt := range []struct {
			name  string
			rec   *sluice.Record
			route string
			want  bool
		}{
			{"later change, same route", item("a", "20"), "r", a},
			{"later by number, not as text", item("a", "1000000000000000000000"), "r", a},
			{"later change, other route", item("a", "20"), "s", false},
			{"the parked record itself", item("a", "10"), "r", false},
			{"earlier change", item("a", "9"), "r", false},
			{"other item", item("c", "20"), "r", false},
			{"item of an earlier table of that name", &other, "r", false},
			{"parked for all routes", item("b", "20"), "r", all},
			{"no item", sluice.DecodeRecord([]byte("?")), "r", false},
		} {
			got, err := b.Holds(t.Context(), tt.rec, tt.route)
			if err != nil || got != tt.want {
				t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
			}
		}
	}
	check(t, b, true, true)
	check(t, NewBox(m, "app"), true, true) // after a restart
	check(t, NewBox(m, "other"), false, false)
	if err := b.Delete(t.Context(), onRoute); err != nil {
		t.Fatal(err)
	}
	check(t, b, false, true)
	if err := b.Delete(t.Context(), forAll); err != nil {
		t.Fatal(err)
	}
	check(t, b, false, false)
	check(t, NewBox(m, "app"), false, false)
}

func TestHoldsRefusesToGuess(t *testing.T) {
	m := state.NewMemory()
	if err := m.PutLetter(t.Context(), "app", "zz", []byte(`{"version":9,"id":"zz"}`)); err != nil {
		t.Fatal(err)
	}
	b := NewBox(m, "app")
	for range 2 {
		if _, err := b.Holds(t.Context(), item("a", "1"), "r"); err == nil || !strings.Contains(err.Error(), "zz is of version 9") {
			t.Fatalf("Holds with an entry that cannot be read: %v", err)
		}
	}
	if err := b.Delete(t.Context(), "zz"); err != nil {
		t.Fatal(err)
	}
	if held, err := b.Holds(t.Context(), item("a", "1"), "r"); held || err != nil {
		t.Fatalf("Holds = %v, %v", held, err)
	}
}

func openFile(t *testing.T, path string) *File {
	t.Helper()
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFileConformance(t *testing.T) {
	statetest.RunLetters(t, func(t *testing.T) state.Letters {
		f := openFile(t, filepath.Join(t.TempDir(), "dir", "letters.ndjson"))
		t.Cleanup(func() { f.Close() })
		return f
	})
}

func TestFileAfterRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.ndjson")
	f := openFile(t, path)
	b := NewBox(f, "app")
	kept := park(t, b, item("a", "1"), "r")
	gone := park(t, b, item("b", "2"), "r")
	park(t, b, item("a", "1"), "r")
	if err := b.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(path); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Fatalf("second OpenFile: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), kept); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("Delete after Close: %v", err)
	}
	for range 2 { // the second opens what the first has compacted
		f = openFile(t, path)
		if got := list(t, NewBox(f, "app")); !slices.Equal(got, []string{"test/1/r"}) {
			t.Fatalf("after a restart: %v", got)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		data, _ := os.ReadFile(path)
		if n := strings.Count(string(data), "\n"); n != 1 {
			t.Fatalf("%d lines after compaction, want 1:\n%s", n, data)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

// Another process may compact the file, and end, between our opening and our
// locking it: what we then have is the old file, which nobody will read again.
func TestFileReplacedBeforeTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.ndjson")
	b := NewBox(openFile(t, path), "app")
	park(t, b, item("a", "1"), "r")
	park(t, b, item("a", "1"), "r") // to be compacted
	if err := b.letters.(*File).Close(); err != nil {
		t.Fatal(err)
	}
	old, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := openFile(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if err := claim(old, path); err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("a lock on the old file was taken for one on the new: %v", err)
	}
}

func TestFileTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.ndjson")
	f := openFile(t, path)
	for i := range 3 {
		if err := f.PutLetter(t.Context(), "app", fmt.Sprint(i), []byte(`"`+strings.Repeat("long ", 12)+`"`)); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range whole {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		f := openFile(t, path)
		want := strings.Count(string(whole[:cut]), "\n")
		if err := f.PutLetter(t.Context(), "app", "x", []byte(`"after"`)); err != nil {
			t.Fatal(err)
		}
		f.Close()
		f = openFile(t, path)
		letters, err := f.ListLetters(t.Context(), "app", "", 10)
		if err != nil || len(letters) != want+1 || string(letters[want].Data) != `"after"` {
			t.Fatalf("cut at %d: %d letters, %v; want %d", cut, len(letters), err, want+1)
		}
		f.Close()
	}
}

func TestFileRefusesDamage(t *testing.T) {
	for name, content := range map[string]string{
		"line 2: ":                  `{"application":"a","id":"1","letter":{}}` + "\n{\n",
		"line 1 is not one of a de": `{"log":"line"}` + "\n",
	} {
		path := filepath.Join(t.TempDir(), "letters.ndjson")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenFile(path); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, want %q", err, name)
		}
		if after, _ := os.ReadFile(path); string(after) != content {
			t.Errorf("the refused file was changed to %q", after)
		}
	}
}

// A write that fails half way leaves no half line, and later ones succeed.
func TestFileWriteFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.ndjson")
	f := openFile(t, path)
	if err := f.PutLetter(t.Context(), "app", "1", []byte(`1`)); err != nil {
		t.Fatal(err)
	}
	whole := f.f
	readOnly, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	f.f = readOnly
	if err := f.PutLetter(t.Context(), "app", "2", []byte(`2`)); err == nil || !strings.Contains(err.Error(), path) {
		t.Fatalf("PutLetter into a read-only file: %v", err)
	}
	f.f = whole
	// What could be neither written nor cut is not written to again.
	if err := f.PutLetter(t.Context(), "app", "3", []byte(`3`)); err == nil {
		t.Fatal("PutLetter after a failure that could not be undone succeeded")
	}
	if _, ok, _ := f.GetLetter(t.Context(), "app", "2"); ok {
		t.Error("a letter that was not stored is there")
	}
	f.Close()
}
