package main

import (
	"strings"
	"testing"

	"github.com/rivo/uniseg"
)

func TestTable(t *testing.T) {
	long := strings.Repeat("0123456789", 8)
	for name, tt := range map[string]struct {
		table
		want, cut string
	}{
		"small": {table{heads: []string{"A", "LAST"}, rows: [][]string{{"one", "two"}, {"", "three"}}}, "A    LAST\none  two\n     three\n", ""},
		"wide letters count twice": {table{heads: []string{"KEY", "N"}, rows: [][]string{{"日本", "1"}, {"abcd", "2"}, {"e\u0301", "3"}}},
			"KEY   N\n日本  1\nabcd  2\ne\u0301     3\n", ""},
		"the widest are cut": {table{heads: []string{"ID", "KEY", "ERROR"}, whole: []string{"ID"}, rows: [][]string{{long[:40], long, "日本" + long}}},
			"ID                                        KEY                           ERROR\n" +
				long[:40] + "  " + long[:27] + "…  日本" + long[:23] + "…\n", "KEY, ERROR"},
		"no narrower than can be read": {table{heads: []string{"ID", "KEY"}, whole: []string{"ID"}, rows: [][]string{{long + long[:20], long}}},
			"ID" + strings.Repeat(" ", 100) + "KEY\n" + long + long[:20] + "  " + long[:11] + "…\n", "KEY"},
	} {
		if text, cut := tt.fit(100); text != tt.want || strings.Join(cut, ", ") != tt.cut {
			t.Errorf("%s:\n%s%s\nwant\n%s%s", name, text, cut, tt.want, tt.cut)
		}
	}
}

// A pipe and a file get everything.
func TestTableInAPipe(t *testing.T) {
	long := strings.Repeat("0123456789", 30)
	var out, problems strings.Builder
	pipe := table{heads: []string{"KEY", "ERROR"}, rows: [][]string{{long, long}}}
	want := "KEY" + strings.Repeat(" ", 299) + "ERROR\n" + long + "  " + long + "\n"
	if err := pipe.print(&out, &problems, "--json has all of it"); err != nil || out.String() != want || problems.Len() > 0 {
		t.Errorf("%v\n%s%s\nwant\n%s", err, &out, &problems, want)
	}
}

func TestCutColumns(t *testing.T) {
	for _, text := range []string{"", "a", "0123456789", "01234567890", "日本語日本語", "e\u0301e\u0301", "👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦", "\xff\xfe"} {
		for columns := range 14 {
			got := cutColumns(text, max(columns, 1))
			if w := uniseg.StringWidth(got); w > max(columns, 1) || !strings.HasPrefix(text, strings.TrimSuffix(got, "…")) {
				t.Errorf("%q in %d columns: %q has %d", text, columns, got, w)
			}
		}
	}
	if got := cutText("a\nb\tc\x1bd", 20); got != "a b c"+plain("\x1b")+"d" {
		t.Errorf("%q", got)
	}
}
