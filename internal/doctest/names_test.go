package doctest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	series  = regexp.MustCompile(`\bsluice_[a-z][a-z0-9_]*\*?`)
	setting = regexp.MustCompile(`\bSLUICE_[A-Z0-9_]+`)
)

// Series and variables that documents name are in the code. docs/metrics.md is
// made of the code, and counts as it for series.
func TestNames(t *testing.T) {
	dir := root(t)
	metrics, err := os.ReadFile(filepath.Join(dir, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != dir:
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		code.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	inMetrics, inCode := words(string(metrics)), words(code.String())
	known := func(in map[string]bool, name string) bool {
		if prefix, ok := strings.CutSuffix(name, "*"); ok || strings.HasSuffix(name, "_") { // sluice_scan*, sluice_cascade_…
			for word := range in {
				if strings.Contains(word, prefix) {
					return true
				}
			}
			return false
		}
		for _, suffix := range []string{"", "_bucket", "_count", "_sum"} {
			if name, ok := strings.CutSuffix(name, suffix); ok && in[name] {
				return true
			}
		}
		return false
	}
	if known(inMetrics, "sluice_no_such_total") || known(inCode, "SLUICE_NO_SUCH") || known(inMetrics, "sluice_recor") ||
		!known(inMetrics, "sluice_lag_seconds_bucket") || !known(inMetrics, "sluice_cascade_") {
		t.Fatal("the test does not tell names that exist from others")
	}
	n := 0
	for _, p := range pages(t) {
		for i, line := range p.lines {
			for _, name := range series.FindAllString(line, -1) {
				if n++; p.name != "docs/metrics.md" && !known(inMetrics, name) {
					t.Errorf("%s:%d: %s is not in docs/metrics.md", p.name, i+1, name)
				}
			}
			for _, name := range setting.FindAllString(line, -1) {
				if n++; !known(inCode, name) {
					t.Errorf("%s:%d: no code reads the variable %s", p.name, i+1, name)
				}
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d names found", n)
	}
}

// words are those of a text that the patterns above can find in it.
func words(text string) map[string]bool {
	in := make(map[string]bool)
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		if lower := strings.ToLower(word); strings.Contains(lower, "sluice") {
			in[word] = true
		}
	}
	return in
}
