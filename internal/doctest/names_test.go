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
	series  = regexp.MustCompile(`\bsluice_[a-z0-9_]+\*?`)
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
	known := func(text, name string) bool {
		if prefix, ok := strings.CutSuffix(name, "*"); ok || strings.HasSuffix(name, "_") { // sluice_scan*, sluice_cascade_…
			return strings.Contains(text, prefix)
		}
		for _, suffix := range []string{"", "_bucket", "_count", "_sum"} {
			if name, ok := strings.CutSuffix(name, suffix); ok && regexp.MustCompile(`\b`+name+`\b`).MatchString(text) {
				return true
			}
		}
		return false
	}
	if known(string(metrics), "sluice_no_such_total") || known(code.String(), "SLUICE_NO_SUCH") || known(string(metrics), "sluice_recor") ||
		!known(string(metrics), "sluice_lag_seconds_bucket") || !known(string(metrics), "sluice_cascade_") {
		t.Fatal("the test does not tell names that exist from others")
	}
	n := 0
	for _, p := range pages(t) {
		for i, line := range p.lines {
			for _, name := range series.FindAllString(line, -1) {
				if n++; p.name != "docs/metrics.md" && !known(string(metrics), name) {
					t.Errorf("%s:%d: %s is not in docs/metrics.md", p.name, i+1, name)
				}
			}
			for _, name := range setting.FindAllString(line, -1) {
				if n++; !known(code.String(), name) {
					t.Errorf("%s:%d: no code reads the variable %s", p.name, i+1, name)
				}
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d names found", n)
	}
}
