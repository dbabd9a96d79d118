package replay

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// No change overtakes a failed one of its item, also not from the next input.
func TestOrderAcrossInputs(t *testing.T) {
	w := world{fails: map[string]error{"one a": errors.New("down")}}
	o := w.options()
	o.Attempts, o.Items = 1, new(Items)
	for i, in := range []string{rec("a", 1), rec("a", 2) + "\n" + rec("b", 3), letter("a", 4, "one") + "\n" + letter("a", 5, "two")} {
		if i > 0 {
			w.fails = nil
		}
		if _, err := Run(t.Context(), w.routes(), strings.NewReader(in), o); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.of("one", "a"); !slices.Equal(got, []string{"1"}) {
		t.Errorf("what failed was overtaken: %v", w.handled)
	}
	if got := w.of("two", "a"); !slices.Equal(got, []string{"1", "2", "5"}) || len(w.of("one", "b")) != 1 {
		t.Errorf("what did not fail was held: %v", w.handled)
	}
	if len(w.parked) != 3 || !strings.HasPrefix(w.parked[2], "one a 4") {
		t.Errorf("parked %q", w.parked)
	}
}
