package router

import (
	"strings"
	"testing"
)

func TestParsePatterns(t *testing.T) {
	const imr = 1<<insert | 1<<modify | 1<<remove
	for _, tt := range []struct {
		in   string
		want []pattern
	}{
		{"search#INSERT", []pattern{{"search#INSERT", "search", 1 << insert}}},
		{"search#*", []pattern{{"search#*", "search", imr}}},
		{"*#REMOVE", []pattern{{"*#REMOVE", "", 1 << remove}}},
		{"*#*", []pattern{{"*#*", "", imr}}},
		{"search#SNAPSHOT", []pattern{{"search#SNAPSHOT", "search", 1 << snapshot}}},
		{"ed-fi#School#MODIFY", []pattern{{"ed-fi#School#MODIFY", "ed-fi#School", 1 << modify}}},
		{"##INSERT", []pattern{{"##INSERT", "#", 1 << insert}}},
		{"  a#INSERT   *#REMOVE ", []pattern{{"a#INSERT", "a", 1 << insert}, {"*#REMOVE", "", 1 << remove}}},
		{"a#INSERT,b#INSERT", []pattern{{"a#INSERT,b#INSERT", "a#INSERT,b", 1 << insert}}},
		{"größe#INSERT", []pattern{{"größe#INSERT", "größe", 1 << insert}}},
	} {
		got, err := parsePatterns(tt.in)
		if err != nil {
			t.Errorf("%q: %v", tt.in, err)
			continue
		}
		if len(got) != len(tt.want) {
			t.Errorf("%q = %v, want %v", tt.in, got, tt.want)
			continue
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%q: pattern %d = %v, want %v", tt.in, i, got[i], tt.want[i])
			}
		}
	}
}

func TestParsePatternsErrors(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", "at byte 0: empty"},
		{"   ", "at byte 3: empty"},
		{"search", "at byte 6: no '#'"},
		{"#INSERT", "at byte 0: empty type"},
		{"search#", `at byte 7: unknown event ""`},
		{"search#insert", `at byte 7: unknown event "insert"; did you mean INSERT?`},
		{"search#INSRT", `at byte 7: unknown event "INSRT"; want INSERT, MODIFY, REMOVE, SNAPSHOT, MESSAGE or *`},
		{"a#INSERT b#DELETE", `at byte 11: unknown event "DELETE"`},
		{"sea*#INSERT", "at byte 3: * within a type"},
		{"**#INSERT", "at byte 0: * within a type"},
		{"a#INSERT a#INSERT", "at byte 9: a#INSERT is there twice"},
		{"a#INSERT\tb#INSERT", `at byte 8: '\t' in a pattern`},
	} {
		_, err := parsePatterns(tt.in)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want it to contain %q", tt.in, err, tt.want)
		}
	}
}
