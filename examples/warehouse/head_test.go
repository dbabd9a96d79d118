package warehouse

import (
	"fmt"
	"slices"
	"testing"
)

// ids are those of the fixtures, in their order, and two after them. Their texts
// are in another.
var ids = []string{
	"9ad45000-fe8b-11f0-8001-0242ac120000",
	"be979600-fe8b-11f0-8001-0242ac120001",
	"e25adc00-fe8b-11f0-8001-0242ac120002",
	"29e16800-fe8c-11f0-8001-0242ac120003",
	"7167f400-fe8c-11f0-8001-0242ac120004",
	"b8ee8000-fe8c-11f0-8001-0242ac120005",
	"00750c00-fe8d-11f0-8001-0242ac120006",
	"47fb9800-fe8d-11f0-8001-0242ac120007",
	"8f822400-fe8d-11f0-8001-0242ac120008",
	"d708b000-fe8d-11f0-8001-0242ac120009",
}

func TestTextsOfIDsAreInAnotherOrder(t *testing.T) {
	if slices.IsSorted(ids) || !slices.IsSortedFunc(ids, compareIDs) {
		t.Error(ids)
	}
}

// A history is the same for any order and repetition of its builds.
func TestHistoryInAnyOrder(t *testing.T) {
	builds := []entry{{ids[4], "1.0.0", 2}, {ids[7], "1.5.0", 0}, {ids[8], "2.0.0", 3}, {ids[9], "1.0.0", 1}, {ids[8], "2.0.0", 3}, {ids[8], "2.0.1", 0}}
	want := []entry{{ids[0], "0.9.0", 0}, {ids[7], "1.5.0", 0}, {ids[8], "2.0.0", 3}, {ids[8], "2.0.1", 0}, {ids[9], "1.0.0", 1}}
	for order := range permutations(len(builds)) {
		h := statusHead{History: []entry{{ids[0], "0.9.0", 0}}}
		for _, i := range order {
			h.History = h.with(builds[i])
		}
		if !slices.Equal(h.History, want) {
			t.Errorf("in the order %v: %v", order, h.History)
		}
	}
}

// later is the id of an event that so many minutes after the first of the fixtures.
func later(minutes int) string {
	ticks := 0x1f0fe8b9ad45000 + int64(minutes)*600_000_000
	return fmt.Sprintf("%08x-%04x-1%03x-8001-0242ac120000", ticks&0xffffffff, ticks>>32&0xffff, ticks>>48)
}

func TestHistoryKeepsTheLast(t *testing.T) {
	var h statusHead
	for i := range 20 {
		h.History = h.with(entry{later(19 - i), fmt.Sprint(i), 0})
	}
	if len(h.History) != historyLength || h.History[0].EventID != later(4) || h.History[15].EventID != later(19) {
		t.Errorf("%v", h.History)
	}
	before := slices.Clone(h.History)
	if got := h.with(entry{later(1), "old", 0}); !slices.Equal(got, before) || !slices.Equal(h.History, before) {
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
