package doctest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page is one document.
type page struct {
	name   string // relative to the module, with slashes
	lines  []string
	blocks []block
}

// block is a fenced block of a page.
type block struct {
	page string
	line int    // of its opening fence, from 1
	kind string // the first word behind the fence
	file string // named by a comment before it
	text string
}

// kinds are the known kinds of blocks, with and without a test.
var kinds = []string{"go", "yaml", "json", "hcl", "promql", "expr", "sh", "console", "text", "mermaid", "html"}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// pages reads all documents of the module.
func pages(t *testing.T) []page {
	t.Helper()
	dir := root(t)
	var all []page
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		p := parsePage(filepath.ToSlash(rel), string(text))
		all = append(all, p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("only %d documents found in %s", len(all), dir)
	}
	return all
}

// blocks returns all blocks of a kind.
func blocks(t *testing.T, kind string) []block {
	t.Helper()
	var found []block
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.kind == kind {
				found = append(found, b)
			}
		}
	}
	return found
}

var fileComment = regexp.MustCompile(`^<!-- file: (\S+) -->$`)

func parsePage(name, text string) page {
	p := page{name: name, lines: strings.Split(text, "\n")}
	var b *block
	var file, fence, indent string
	var body strings.Builder
	for i, line := range p.lines {
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case b == nil && strings.HasPrefix(trimmed, "```"):
			ticks := len(trimmed) - len(strings.TrimLeft(trimmed, "`"))
			fence, indent = trimmed[:ticks], line[:len(line)-len(trimmed)]
			kind, _, _ := strings.Cut(strings.TrimSpace(trimmed[ticks:]), " ")
			b = &block{page: name, line: i + 1, kind: kind, file: file}
			file = ""
			body.Reset()
		case b != nil && strings.TrimSpace(line) == fence:
			b.text = body.String()
			p.blocks = append(p.blocks, *b)
			b = nil
		case b != nil:
			body.WriteString(strings.TrimPrefix(line, indent) + "\n")
		default:
			if m := fileComment.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				file = m[1]
			} else if strings.TrimSpace(line) != "" {
				file = ""
			}
		}
	}
	if b != nil { // never closed: TestKinds tells
		b.kind = "unclosed"
		p.blocks = append(p.blocks, *b)
	}
	return p
}

// A block of a kind that no test knows would rot unseen.
func TestKinds(t *testing.T) {
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if !slices.Contains(kinds, b.kind) {
				t.Errorf("%s:%d: a block of the kind %q: write one of %s behind its fence, or add the kind to package doctest with what is checked of it", b.page, b.line, b.kind, strings.Join(kinds, ", "))
			}
		}
	}
}

func TestParsePage(t *testing.T) {
	p := parsePage("x.md", "a\n<!-- file: a.yaml -->\n```yaml\nname: x\n  y: 1\n```\n  ```sh more\n  make demo\n  ```\n````text\n```\n````\n```go\nleft open\n")
	want := []block{
		{page: "x.md", line: 3, kind: "yaml", file: "a.yaml", text: "name: x\n  y: 1\n"},
		{page: "x.md", line: 7, kind: "sh", text: "make demo\n"},
		{page: "x.md", line: 10, kind: "text", text: "```\n"},
		{page: "x.md", line: 13, kind: "unclosed"},
	}
	if !slices.Equal(p.blocks, want) {
		t.Errorf("got  %+v\nwant %+v", p.blocks, want)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
