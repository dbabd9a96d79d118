package statetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

func runValues(t *testing.T, open func(t *testing.T) (v state.Values, close func() error)) {
	runAll(t, open, []test[state.Values]{
		{"values", testValues},
		{"values of applications are apart, and from letters", testValuesApart},
		{"values are copied", testValuesCopied},
		{"values by prefix", testValuesByPrefix},
		{"values at the same time", testValuesConcurrent},
		{"values, cancelled", testValuesCancelled},
	})
}

func putValue(t *testing.T, v state.Values, app, name, data string) {
	t.Helper()
	if err := v.PutValue(t.Context(), app, name, []byte(data)); err != nil {
		t.Fatalf("PutValue(%s): %v", name, err)
	}
}

// values lists the values with the prefix, as name=data.
func values(t *testing.T, v state.Values, app, prefix string) (got []string) {
	t.Helper()
	all, err := v.ListValues(t.Context(), app, prefix)
	if err != nil {
		t.Fatalf("ListValues: %v", err)
	}
	for _, x := range all {
		got = append(got, x.Name+"="+string(x.Data))
	}
	return got
}

func testValues(t *testing.T, v state.Values) {
	if data, ok, err := v.GetValue(t.Context(), "app", "n"); data != nil || ok || err != nil {
		t.Fatalf("GetValue of none = %q, %v, %v", data, ok, err)
	}
	succeeds(t, "DeleteValue of none", v.DeleteValue(t.Context(), "app", "n"))
	putValue(t, v, "app", "n", "one")
	putValue(t, v, "app", "n", "uno")
	putValue(t, v, "app", "empty", "")
	for name, want := range map[string]string{"n": "uno", "empty": ""} {
		if data, ok, err := v.GetValue(t.Context(), "app", name); string(data) != want || !ok || err != nil {
			t.Fatalf("GetValue(%s) = %q, %v, %v; want %q", name, data, ok, err, want)
		}
	}
	succeeds(t, "DeleteValue", v.DeleteValue(t.Context(), "app", "n"))
	if _, ok, err := v.GetValue(t.Context(), "app", "n"); ok || err != nil {
		t.Fatalf("after its deletion: %v, %v", ok, err)
	}
	for _, bad := range []struct {
		app, name string
		data      []byte
	}{{"", "n", nil}, {"app", "", nil}, {"app", "large", make([]byte, staterules.MaxValue+1)}} {
		if err := v.PutValue(t.Context(), bad.app, bad.name, bad.data); err == nil {
			t.Errorf("value %q of application %q with %d bytes was stored", bad.name, bad.app, len(bad.data))
		}
	}
	largest := bytes.Repeat([]byte{0xff, 0}, staterules.MaxValue/2)
	putValue(t, v, "app", "large", string(largest))
	if data, _, err := v.GetValue(t.Context(), "app", "large"); !bytes.Equal(data, largest) || err != nil {
		t.Errorf("the largest came back with %d bytes, %v", len(data), err)
	}
}

func testValuesApart(t *testing.T, v state.Values) {
	putValue(t, v, "a", "n", "of a")
	putValue(t, v, "b", "n", "of b")
	if l, ok := v.(state.Letters); ok {
		put(t, l, "a", "n", "letter")
		succeeds(t, "DeleteLetter", l.DeleteLetter(t.Context(), "b", "n"))
	}
	succeeds(t, "DeleteValue", v.DeleteValue(t.Context(), "a", "n"))
	if got := values(t, v, "a", ""); got != nil {
		t.Errorf("values of a: %q", got)
	}
	if got := values(t, v, "b", ""); !slices.Equal(got, []string{"n=of b"}) {
		t.Errorf("values of b: %q", got)
	}
	if l, ok := v.(state.Letters); ok {
		if data, _, err := l.GetLetter(t.Context(), "a", "n"); string(data) != "letter" || err != nil {
			t.Errorf("the letter of the same name is %q, %v", data, err)
		}
	}
}

func testValuesCopied(t *testing.T, v state.Values) {
	want := bytes.Repeat([]byte("value"), 2000)
	data := bytes.Clone(want)
	succeeds(t, "PutValue", v.PutValue(t.Context(), "app", "n", data))
	data[0] = 'X'
	for range 2 {
		got, _, err := v.GetValue(t.Context(), "app", "n")
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("GetValue = %.20q, %v", got, err)
		}
		got[0] = 'Y'
		list, err := v.ListValues(t.Context(), "app", "n")
		if err != nil || len(list) != 1 || !bytes.Equal(list[0].Data, want) {
			t.Fatalf("ListValues = %.20v, %v", list, err)
		}
		list[0].Data[0] = 'Z'
	}
}

func testValuesByPrefix(t *testing.T, v state.Values) {
	for _, name := range []string{"b/2", "b", "a/1", "b/10", "b0", "é", "b/é"} { // unordered
		putValue(t, v, "app", name, "x")
	}
	for prefix, want := range map[string][]string{
		"":    {"a/1=x", "b=x", "b/10=x", "b/2=x", "b/é=x", "b0=x", "é=x"},
		"b/":  {"b/10=x", "b/2=x", "b/é=x"},
		"b":   {"b=x", "b/10=x", "b/2=x", "b/é=x", "b0=x"},
		"a/1": {"a/1=x"},
		"c":   nil,
	} {
		if got := values(t, v, "app", prefix); !slices.Equal(got, want) {
			t.Errorf("with the prefix %q: %q, want %q", prefix, got, want)
		}
	}
	if got := values(t, v, "none", ""); got != nil {
		t.Errorf("of an application without values: %q", got)
	}
}

func testValuesConcurrent(t *testing.T, v state.Values) {
	var wg sync.WaitGroup
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("%02d=9", i))
		wg.Go(func() {
			for n := range 10 {
				if err := v.PutValue(t.Context(), "app", fmt.Sprintf("%02d", i), fmt.Append(nil, n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := values(t, v, "app", ""); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func testValuesCancelled(t *testing.T, v state.Values) {
	putValue(t, v, "app", "n", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, getErr := v.GetValue(ctx, "app", "n")
	_, listErr := v.ListValues(ctx, "app", "")
	cancelled(t, map[string]error{
		"PutValue": v.PutValue(ctx, "app", "m", nil), "DeleteValue": v.DeleteValue(ctx, "app", "n"),
		"GetValue": getErr, "ListValues": listErr,
	})
	if got := values(t, v, "app", ""); !slices.Equal(got, []string{"n=x"}) {
		t.Errorf("values: %q, want the one that was put before", got)
	}
}
