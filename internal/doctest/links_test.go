package doctest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// Every link within the repository leads to a file, and to a heading of it.
func TestLinks(t *testing.T) {
	all := make(map[string]map[string]bool)
	for _, p := range pages(t) {
		all[p.name] = p.anchors()
	}
	n := 0
	for _, p := range pages(t) {
		for _, l := range p.links() {
			n++
			if err := follow(root(t), all, p.name, l.target); err != nil {
				t.Errorf("%s:%d: %s: %v", p.name, l.line, l.target, err)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d links found", n)
	}
}

func follow(root string, anchors map[string]map[string]bool, from, target string) error {
	file, anchor, _ := strings.Cut(target, "#")
	to := from
	if file != "" {
		to = path.Join(path.Dir(from), file)
	}
	if strings.HasPrefix(to, "..") || strings.HasPrefix(file, "/") {
		return fmt.Errorf("it leads out of the repository")
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(to))); err != nil {
		return fmt.Errorf("there is no such file")
	}
	if anchor != "" && !anchors[to][anchor] {
		return fmt.Errorf("%s has no heading #%s", to, anchor)
	}
	return nil
}

type link struct {
	line   int
	target string
}

var (
	codeSpan   = regexp.MustCompile("``[^`]+``|`[^`]+`")
	inlineLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	scheme     = regexp.MustCompile(`^[a-z]+:`)
	heading    = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// prose calls f with each line that is in no block.
func (p page) prose(f func(line int, text string)) {
	next := 0
	for i := 0; i < len(p.lines); i++ {
		if next < len(p.blocks) && i == p.blocks[next].line-1 {
			i += strings.Count(p.blocks[next].text, "\n") + 1
			next++
			continue
		}
		f(i+1, p.lines[i])
	}
}

// links are those of the page that lead to files.
func (p page) links() (found []link) {
	p.prose(func(line int, text string) {
		for _, m := range inlineLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(text, "``"), -1) {
			if !scheme.MatchString(m[1]) {
				found = append(found, link{line, m[1]})
			}
		}
	})
	return found
}

// anchors are the names that GitHub gives to headings.
func (p page) anchors() map[string]bool {
	names := make(map[string]bool)
	p.prose(func(_ int, text string) {
		m := heading.FindStringSubmatch(text)
		if m == nil {
			return
		}
		name := strings.Map(func(c rune) rune {
			switch {
			case unicode.IsLetter(c), unicode.IsDigit(c), c == '-', c == '_':
				return unicode.ToLower(c)
			case c == ' ':
				return '-'
			}
			return -1
		}, linkText.ReplaceAllString(m[1], "$1"))
		for base, i := name, 1; names[name]; i++ {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		names[name] = true
	})
	return names
}

func TestLinksWithMistakes(t *testing.T) {
	p := parsePage("docs/x.md", "# A `b_c`: [d](e.md), f\n## Same\n## Same\n[x](../y.md#z) `[no](link)` [web](https://a.b)\n```sh\n# no heading\n[no](link)\n```\n")
	if got, want := fmt.Sprint(p.links()), "[{1 e.md} {4 ../y.md#z}]"; got != want {
		t.Errorf("links are %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(p.anchors()), "map[a-b_c-d-f:true same:true same-1:true]"; got != want {
		t.Errorf("anchors are %s, want %s", got, want)
	}
	anchors := map[string]map[string]bool{"docs/x.md": p.anchors()}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "docs", "x.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for target, fine := range map[string]bool{
		"#same-1": true, "#same-2": false, "x.md": true, "../docs/x.md#same": true, "../docs": true,
		"y.md": false, "../../x.md": false, "/docs/x.md": false,
	} {
		if err := follow(dir, anchors, "docs/x.md", target); (err == nil) != fine {
			t.Errorf("%s: %v", target, err)
		}
	}
}
