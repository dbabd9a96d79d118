package keypattern

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func TestKeyPattern(t *testing.T) {
	for _, tt := range []struct{ pattern, key, want string }{
		{"TYPE#*#*#{type}", "TYPE#Ed-Fi#3.3.1-b#School", "School"},
		{"TYPE#*#*#{type}", "TYPE#Ed-Fi#3.3.1-b#School#1", ""},
		{"TYPE#*#*#{type}", "TYPE#Ed-Fi#3.3.1-b#", ""},
		{"TYPE#*#*#{type}", "TYPE###School", "School"},
		{"TYPE#*#*#{type}", "KIND#Ed-Fi#3.3.1-b#School", ""},
		{"{type}#**", "user#17", "user"},
		{"{type}#**", "user#17#2024", "user"},
		{"{type}#**", "user#", "user"},
		{"{type}#**", "user", ""},
		{"{type}#**", "#17", ""},
		{"{type}", "contact", "contact"},
		{"{type}", "contact#1", ""},
		{"{type}-*", "order-5", "order"},
		{"{type}-*", "order-5#1", ""},
		{"{type}-v*", "a-b-v1-v2", "a-b"},
		{"*-{type}", "a-b-c", "b-c"},
		{"{type}-v1", "a-v1-v1", "a-v1"},
		{"{type}a", "a", ""},
		{"{type}a", "aa", "a"},
		{"größe#{type}", "größe#é", "é"},
		{"{type}#", "a#", "a"},
		{"{type}#", "a", ""},
	} {
		p, err := Parse(tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		from, to := p.Find([]byte(tt.key))
		if got := tt.key[from:to]; got != tt.want {
			t.Errorf("%s finds %q in %q, want %q", tt.pattern, got, tt.key, tt.want)
		}
	}
}

func TestKeyPatternErrors(t *testing.T) {
	for _, tt := range []struct{ pattern, want string }{
		{"", "at byte 0: no {type}"},
		{"TYPE#*", "at byte 6: no {type}"},
		{"{type}#{type}", "at byte 7: {type} is there twice"},
		{"a#{kind}", "at byte 2: '{'; want {type}"},
		{"a}#{type}", "at byte 1: '}'; want {type}"},
		{"*{type}", "at byte 1: two wildcards side by side"},
		{"{type}*", "at byte 6: two wildcards side by side"},
		{"{type}#a**", "at byte 9: two wildcards side by side"},
		{"**#{type}", "at byte 2: ** is not the last segment"},
	} {
		if _, err := Parse(tt.pattern); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want it to contain %q", tt.pattern, err, tt.want)
		}
	}
}

// TestKeyPatternAgainstRegexp holds the matcher against a regular expression of
// the same meaning, on random patterns and keys of a small alphabet.
func TestKeyPatternAgainstRegexp(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	text := func(n int, alphabet ...string) string {
		var b strings.Builder
		for range rng.IntN(n) {
			b.WriteString(alphabet[rng.IntN(len(alphabet))])
		}
		return b.String()
	}
	matched := 0
	for range 20000 {
		pattern := text(4, "a", "b", "#", "*") + "{type}" + text(4, "a", "b", "#", "*")
		if rng.IntN(4) == 0 {
			pattern += "#**"
		}
		p, err := Parse(pattern)
		if err != nil {
			continue
		}
		expr, open := strings.CutSuffix(regexp.QuoteMeta(pattern), `#\*\*`)
		expr = strings.ReplaceAll(expr, `\{type\}`, `([^#]+?)`)
		expr = strings.ReplaceAll(expr, `\*`, `[^#]*?`)
		if open {
			expr += "#.*"
		}
		re := regexp.MustCompile("^" + expr + "$")
		for range 20 {
			key := text(7, "a", "b", "#")
			want := ""
			if m := re.FindStringSubmatch(key); m != nil {
				want = m[1]
				matched++
			}
			from, to := p.Find([]byte(key))
			if got := key[from:to]; got != want {
				t.Fatalf("%s finds %q in %q, want %q", pattern, got, key, want)
			}
		}
	}
	if matched < 1000 {
		t.Errorf("only %d keys matched: the test tests little", matched)
	}
}
