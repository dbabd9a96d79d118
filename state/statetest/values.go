package statetest

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

func runValues(t *testing.T, open func(t *testing.T) state.Values) {
	runAll(t, open, []test[state.Values]{
		{"values", testValues},
		{"values of applications are apart, and from letters", testValuesApart},
		{"values are copied", ofValues(testNamedCopied)},
		{"values by prefix", testValuesByPrefix},
		{"values at the same time", testValuesConcurrent},
		{"values, cancelled", ofValues(testNamedCancelled)},
	})
}

func putValue(t *testing.T, v state.Values, app, name, data string) {
	t.Helper()
	succeeds(t, "PutValue", v.PutValue(t.Context(), app, name, []byte(data)))
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
	ofValues(testNamed)(t, v)
	if err := v.PutValue(t.Context(), "app", "large", make([]byte, staterules.MaxValue+1)); err == nil {
		t.Error("a value that is too large was stored")
	}
	largest := bytes.Repeat([]byte{0xff, 0}, staterules.MaxValue/2)
	putValue(t, v, "app", "large", string(largest))
	if data, _, err := v.GetValue(t.Context(), "app", "large"); !bytes.Equal(data, largest) || err != nil {
		t.Errorf("the largest came back with %d bytes, %v", len(data), err)
	}
}

func testValuesApart(t *testing.T, v state.Values) {
	l, ok := v.(state.Letters)
	if ok {
		put(t, l, "a", "n", "letter")
	}
	ofValues(testNamedApart)(t, v)
	if ok {
		ofLetters(func(t *testing.T, k namedBytes) { k.holds(t, "a", "n", "letter") })(t, l)
		succeeds(t, "DeleteLetter", l.DeleteLetter(t.Context(), "b", "n"))
		ofValues(func(t *testing.T, k namedBytes) { k.holds(t, "b", "n", "of b") })(t, v)
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
