package doctest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/hashicorp/hcl/v2/hclparse"

	"github.com/sluicehq/sluice/internal/config"
)

func TestJSON(t *testing.T) {
	for _, b := range blocks(t, "json") {
		if err := parseJSON(b.text); err != nil {
			t.Errorf("%s:%d: %v", b.page, b.line, err)
		}
	}
}

func parseJSON(text string) error {
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestHCL(t *testing.T) {
	for _, b := range blocks(t, "hcl") {
		if err := parseHCL(b.text); err != nil {
			t.Errorf("%s:%d: %v", b.page, b.line, err)
		}
	}
}

func parseHCL(text string) error {
	if _, diags := hclparse.NewParser().ParseHCL([]byte(text), "block"); diags.HasErrors() {
		return diags
	}
	return nil
}

// config must accept every configuration. Other YAML must parse.
func TestYAML(t *testing.T) {
	for _, p := range pages(t) {
		dir := t.TempDir()
		for _, b := range p.blocks {
			writeFile(t, dir, b)
		}
		for _, b := range p.blocks {
			if b.kind != "yaml" {
				continue
			}
			if err := parseYAML(dir, b.text); err != nil {
				t.Errorf("%s:%d: %v", b.page, b.line, err)
			}
		}
	}
}

// writeFile writes a block that is a file of its page into dir.
func writeFile(t *testing.T, dir string, b block) {
	t.Helper()
	if b.file == "" {
		return
	}
	path := filepath.Join(dir, filepath.FromSlash(b.file))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(b.text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func parseYAML(dir, text string) error {
	var keys map[string]any
	if err := yaml.Unmarshal([]byte(text), &keys); err != nil {
		return err
	}
	for _, ours := range []string{"source", "routes", "sinks", "entityType"} {
		if _, ok := keys[ours]; ok {
			_, err := config.Parse("block", dir, []byte(text), variable)
			return err
		}
	}
	return nil
}

// variable returns a value for every variable of a configuration.
func variable(name string) (string, bool) {
	for _, part := range []string{"URL", "ENDPOINT", "OPENSEARCH"} {
		if strings.Contains(name, part) && !strings.Contains(name, "PASSWORD") {
			return "http://127.0.0.1:9200", true
		}
	}
	return strings.ToLower(name), true
}

// Each line is an expression that a route takes.
func TestExpr(t *testing.T) {
	for _, b := range blocks(t, "expr") {
		for line := range strings.Lines(b.text) {
			if err := parseExpr(strings.TrimSpace(line)); err != nil {
				t.Errorf("%s:%d: %v", b.page, b.line, err)
			}
		}
	}
}

func parseExpr(line string) error {
	if line == "" {
		return nil
	}
	quoted := "'" + strings.ReplaceAll(line, "'", "''") + "'"
	return parseYAML("", "source: {tables: [orders]}\nroutes: [{name: r, on: 't#*', when: "+quoted+", log: {}}]\n")
}

// The module has no parser for PromQL. This test finds unclosed brackets and quotes;
// TestNames finds unknown series.
func TestPromQL(t *testing.T) {
	for _, b := range blocks(t, "promql") {
		if err := balanced(b.text); err != nil {
			t.Errorf("%s:%d: %v", b.page, b.line, err)
		}
	}
}

func balanced(text string) error {
	closes := map[rune]rune{'(': ')', '{': '}', '[': ']'}
	var open []rune
	quoted := false
	for i, c := range text {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case closes[c] != 0:
			open = append(open, closes[c])
		case strings.ContainsRune(")}]", c):
			if len(open) == 0 || open[len(open)-1] != c {
				return fmt.Errorf("%q at %d closes nothing", c, i)
			}
			open = open[:len(open)-1]
		}
	}
	if quoted || len(open) > 0 {
		return errors.New("a quote or bracket is left open")
	}
	return nil
}

func TestDataWithMistakes(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
	}{
		{"json", parseJSON(`{"a": 1} {"b": }`)},
		{"hcl", parseHCL(`resource "a" {`)},
		{"yaml", parseYAML("", "a: [1")},
		{"configuration", parseYAML("", "source: {tables: [orders]}\nroutes: [{name: r, on: 't#INSRT', log: {}}]\n")},
		{"expr", parseExpr(`new.a ==`)},
		{"promql", balanced(`rate(x[5m]`)},
		{"promql quote", balanced(`x{a="b}`)},
		{"promql order", balanced(`x)(`)},
	} {
		if tt.err == nil {
			t.Errorf("%s: no error", tt.name)
		}
	}
	for name, err := range map[string]error{
		"json":          parseJSON("{\"a\": 1}\n[2]\n"),
		"hcl":           parseHCL("a \"b\" {\n  c = 1\n}\n"),
		"yaml":          parseYAML("", "a: [1]\n"),
		"expr":          parseExpr(`new.a == 'b' && old.c in ["d"]`),
		"configuration": parseYAML("", "source: {tables: [orders]}\nroutes: [{name: r, on: 't#INSERT', log: {}}]\n"),
		"promql":        balanced(`sum by (route) (rate(x{a="("}[5m]))`),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
