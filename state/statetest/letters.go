package statetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/state"
)

func put(t *testing.T, l state.Letters, app, id, data string) {
	t.Helper()
	if err := l.PutLetter(t.Context(), app, id, []byte(data)); err != nil {
		t.Fatalf("PutLetter(%s): %v", id, err)
	}
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

func testLetters(t *testing.T, l state.Letters) {
	if data, ok, err := l.GetLetter(t.Context(), "app", "1"); data != nil || ok || err != nil {
		t.Fatalf("GetLetter of none = %q, %v, %v", data, ok, err)
	}
	succeeds(t, "DeleteLetter of none", l.DeleteLetter(t.Context(), "app", "1"))
	if got := ids(t, l, "app", "", 10); got != nil {
		t.Fatalf("letters of an empty store: %v", got)
	}
	put(t, l, "app", "1", "one")
	put(t, l, "app", "1", "uno")
	put(t, l, "app", "2", "")
	for id, want := range map[string]string{"1": "uno", "2": ""} {
		if data, ok, err := l.GetLetter(t.Context(), "app", id); string(data) != want || !ok || err != nil {
			t.Fatalf("GetLetter(%s) = %q, %v, %v; want %q", id, data, ok, err, want)
		}
	}
	succeeds(t, "DeleteLetter", l.DeleteLetter(t.Context(), "app", "1"))
	if got := ids(t, l, "app", "", 10); !slices.Equal(got, []string{"2"}) {
		t.Fatalf("after the deletion of 1: %v", got)
	}
	if err := l.PutLetter(t.Context(), "", "1", nil); err == nil {
		t.Error("a letter of no application was stored")
	}
	if err := l.PutLetter(t.Context(), "app", "", nil); err == nil {
		t.Error("a letter without an id was stored")
	}
}

func testLettersApart(t *testing.T, l state.Letters) {
	put(t, l, "a", "1", "of a")
	put(t, l, "b", "1", "of b")
	succeeds(t, "DeleteLetter", l.DeleteLetter(t.Context(), "a", "1"))
	if data, ok, err := l.GetLetter(t.Context(), "b", "1"); string(data) != "of b" || !ok || err != nil {
		t.Fatalf("GetLetter = %q, %v, %v", data, ok, err)
	}
	if got := ids(t, l, "a", "", 10); got != nil {
		t.Fatalf("letters of a: %v", got)
	}
}

func testLettersCopied(t *testing.T, l state.Letters) {
	want := bytes.Repeat([]byte("letter"), 2000) // more than a store keeps inline
	data := bytes.Clone(want)
	succeeds(t, "PutLetter", l.PutLetter(t.Context(), "app", "1", data))
	data[0] = 'X'
	for range 2 {
		got, _, err := l.GetLetter(t.Context(), "app", "1")
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("GetLetter = %q, %v", got, err)
		}
		got[0] = 'Y'
		list, err := l.ListLetters(t.Context(), "app", "", 1)
		if err != nil || !bytes.Equal(list[0].Data, want) {
			t.Fatalf("ListLetters = %v, %v", list, err)
		}
		list[0].Data[0] = 'Z'
	}
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

func testLettersCancelled(t *testing.T, l state.Letters) {
	put(t, l, "app", "1", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, getErr := l.GetLetter(ctx, "app", "1")
	_, listErr := l.ListLetters(ctx, "app", "", 1)
	cancelled(t, map[string]error{
		"PutLetter": l.PutLetter(ctx, "app", "2", nil), "DeleteLetter": l.DeleteLetter(ctx, "app", "1"),
		"GetLetter": getErr, "ListLetters": listErr,
	})
	if got := ids(t, l, "app", "", 10); !slices.Equal(got, []string{"1"}) {
		t.Errorf("letters: %v, want the one that was put before", got)
	}
}
