package statetest

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/state"
)

func put(t *testing.T, l state.Letters, app, id, data string) {
	t.Helper()
	succeeds(t, "PutLetter", l.PutLetter(t.Context(), app, id, []byte(data)))
}

func ids(t *testing.T, l state.Letters, app, after string, limit int) []string {
	t.Helper()
	letters, err := l.ListLetters(t.Context(), app, after, limit)
	if err != nil {
		t.Fatalf("ListLetters: %v", err)
	}
	var got []string
	for _, x := range letters {
		got = append(got, x.ID)
	}
	return got
}

func testLettersPages(t *testing.T, l state.Letters) {
	var wg sync.WaitGroup
	for i := range 25 {
		wg.Go(func() { put(t, l, "app", fmt.Sprintf("%02d", i), "x") })
	}
	wg.Wait()
	var got []string
	for after := ""; ; after = got[len(got)-1] {
		page := ids(t, l, "app", after, 10)
		if len(page) == 0 || len(got) > 25 {
			break
		}
		got = append(got, page...)
	}
	if len(got) != 25 || !slices.IsSorted(got) {
		t.Fatalf("pages hold %v, want 00 to 24 in order", got)
	}
	if page := ids(t, l, "app", "095", 2); !slices.Equal(page, []string{"10", "11"}) {
		t.Fatalf("after an id that is not there: %v", page)
	}
	if page := ids(t, l, "app", "", 0); page != nil {
		t.Fatalf("a limit of 0 gave %v", page)
	}
}

func testLettersBytes(t *testing.T, l state.Letters) {
	want := map[string][]byte{ // unordered
		"b": {0, 0xff, '\n', 0x7f, '"'},
		"B": []byte(`{"json": true}`),
		// Two images of 400 KB and their metadata.
		"é":   bytes.Repeat([]byte{0xfe, 'x'}, 500_000),
		"a/b": []byte("null"),
		"10":  []byte("\"\\ud800\""),
		"9":   []byte(" [1,  2]"),
	}
	for id, data := range want {
		put(t, l, "app", id, string(data))
	}
	if got := ids(t, l, "app", "", 100); !slices.Equal(got, []string{"10", "9", "B", "a/b", "b", "é"}) {
		t.Fatalf("ids in the order of strings: %q", got)
	}
	for id, data := range want {
		if got, ok, err := l.GetLetter(t.Context(), "app", id); !bytes.Equal(got, data) || !ok || err != nil {
			t.Errorf("GetLetter(%s) = %.40q of %d bytes, %v, %v; want %.40q of %d", id, got, len(got), ok, err, data, len(data))
		}
	}
}
