package doctest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	tableRule = regexp.MustCompile(`^\|? *:?-{3,}:? *(\| *:?-{3,}:? *)+\|?$`)
	tableBar  = regexp.MustCompile(`(^|[^\\])\|`)
)

// columns counts the cells of a table's row, as GitHub does: outer bars are none.
func columns(row string) int {
	row = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
	return len(tableBar.FindAllStringIndex(row, -1)) + 1
}

// A table whose header has more or fewer cells than its rule is shown as text.
func TestTablesAreTables(t *testing.T) {
	n := 0
	for _, p := range pages(t) {
		lines := strings.Split(string(readFile(t, filepath.Join(root(t), p.name))), "\n")
		for i := 1; i < len(lines); i++ {
			if !tableRule.MatchString(lines[i]) {
				continue
			}
			n++
			if have, want := columns(lines[i-1]), columns(lines[i]); have != want {
				t.Errorf("%s:%d: the header has %d cells, and its rule %d: %s", p.name, i, have, want, lines[i-1])
			}
			for j := i + 1; j < len(lines) && lines[j] != ""; j++ {
				if columns(lines[j]) > columns(lines[i]) {
					t.Errorf("%s:%d: more cells than the header has: %s", p.name, j+1, lines[j])
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d tables", n)
	}
}
