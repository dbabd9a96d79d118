package docversion

import "testing"

func TestLeastOfOtherTexts(t *testing.T) {
	for text, want := range map[string]int64{BeforeAll: 1, "": 0, "x": 0, "20240101T000000.000-": 0, "20240101T000000.000-x1": 0, "2024-1": 0} {
		if got := Least(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
