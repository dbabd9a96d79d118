package warehouse

import (
	"fmt"
	"slices"
	"testing"
)

// A history is the same in whatever order its builds arrive, also repeated.
func TestHistoryInAnyOrder(t *testing.T) {
	builds := []entry{{"03", "1.0.0"}, {"07", "1.5.0"}, {"08", "2.0.0"}, {"09", "1.0.0"}, {"08", "2.0.0"}}
	want := []entry{{"00", "0.9.0"}, {"07", "1.5.0"}, {"08", "2.0.0"}, {"09", "1.0.0"}}
	for order := range permutations(len(builds)) {
		h := statusHead{History: []entry{{"00", "0.9.0"}}}
		for _, i := range order {
			h.History = h.with(builds[i])
		}
		if !slices.Equal(h.History, want) {
			t.Errorf("in the order %v: %v", order, h.History)
		}
	}
}

func TestHistoryKeepsTheLast(t *testing.T) {
	var h statusHead
	for i := range 20 {
		h.History = h.with(entry{fmt.Sprintf("%02d", 19-i), fmt.Sprint(i)})
	}
	if len(h.History) != historyLength || h.History[0].EventID != "04" || h.History[15].EventID != "19" {
		t.Errorf("%v", h.History)
	}
	before := slices.Clone(h.History)
	if got := h.with(entry{"01", "old"}); !slices.Equal(got, before) || !slices.Equal(h.History, before) {
		t.Errorf("an event older than all that is remembered: %v", got)
	}
}

// permutations yields every order of the numbers below n.
func permutations(n int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		var permute func(k int) bool
		permute = func(k int) bool {
			if k == n {
				return yield(slices.Clone(order))
			}
			for i := k; i < n; i++ {
				order[k], order[i] = order[i], order[k]
				if !permute(k + 1) {
					return false
				}
				order[k], order[i] = order[i], order[k]
			}
			return true
		}
		permute(0)
	}
}

func TestJoin(t *testing.T) {
	if got, err := join("a", "b"); got != "a!b" || err != nil {
		t.Error(got, err)
	}
	for _, parts := range [][]string{{"a!b", "c"}, {"a", ""}} {
		if got, err := join(parts...); err == nil {
			t.Errorf("%q became the key %q", parts, got)
		}
	}
}
