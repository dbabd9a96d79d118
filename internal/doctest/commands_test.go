package doctest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/internal/localstack"
)

// foreign are commands of others that documents may use.
var foreign = []string{
	"aws", "curl", "jq", "sed", "date", ".", "docker", "kubectl", "helm", "terraform", "systemctl", "journalctl", "systemd-analyze", "podman",
	"git", "cat", "cd", "cp", "mv", "rm", "mkdir", "chmod", "install", "ls", "tar", "unzip", "zip", "echo", "printf", "export", "alias", "kill", "wait", "sleep", "seq", "head", "tail", "grep", "tee", "true",
	"apt-get", "brew", "useradd", "promtool", "sam", "cosign", "sha256sum", "openssl", "umask",
}

// Commands in blocks and code spans are ones that there are: of sluice with
// their flags, targets of make, packages of the go command.
func TestCommands(t *testing.T) {
	c := newCommands(t)
	n := 0
	for _, p := range pages(t) {
		known := make(map[string]bool) // aliases and binaries that the page makes
		for _, b := range p.blocks {
			switch b.kind {
			case "sh":
			case "console":
				b.text = typed(b.text)
			default:
				continue
			}
			for _, words := range commands(b.text) {
				n++
				if err := c.check(words, known); err != nil {
					t.Errorf("%s:%d: %s: %v", b.page, b.line, strings.Join(words, " "), err)
				}
			}
		}
		p.prose(func(line int, text string) {
			for _, span := range codeSpan.FindAllString(text, -1) {
				span = strings.Trim(span, "`")
				if !strings.HasPrefix(span, "sluice ") && !strings.HasPrefix(span, "make ") {
					continue
				}
				for _, words := range commands(span) {
					n++
					if err := c.check(words, known); err != nil {
						t.Errorf("%s:%d: %s: %v", p.name, line, span, err)
					}
				}
			}
		})
	}
	if n < 50 {
		t.Errorf("only %d commands found", n)
	}
}

// The README's table has every command.
func TestCommandsAreListed(t *testing.T) {
	c := newCommands(t)
	help, err := c.helpOf(nil)
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(c.root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(afterCommands(help)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" || name == "help" {
			continue
		}
		if n++; !regexp.MustCompile("(?m)^[^|\n]+ \\| .*`sluice " + name + "[ `]").Match(readme) {
			t.Errorf("README.md has no line for sluice %s in its table of commands", name)
		}
	}
	if n < 10 {
		t.Errorf("only %d commands found", n)
	}
}

func TestCommandsWithMistakes(t *testing.T) {
	c := newCommands(t)
	for _, tt := range []struct{ text, want string }{
		{"sluice run --table a --start=LATEST", ""},
		{"X=1 sluice run … --state \"$HOME/a b\" # --no-such", ""},
		{"sluice rum", "rum"},
		{"sluice run --tabel a", "--tabel"},
		{"true && sluice run --tabel a", "--tabel"},
		{"export A=$(sluice rum) B=1", "rum"},
		{"make demo PKG=./flow/...", ""},
		{"make dema", "dema"},
		{"go run ./examples/manhunt/main --start LATEST", ""},
		{"go build -o bin/x ./examples/nobody", "./examples/nobody"},
		{"go build -o bin/x ./examples/manhunt/main\nbin/x run; bin/x --y", ""},
		{"bin/y", "bin/y"},
		{"ddb put-item", "ddb"},
		{"alias ddb='aws dynamodb'\nddb put-item | jq . && \\\n  ddb scan", ""},
		{"for i in 1 2; do sluice rum; done", "rum"},
		{"cat > a.yaml <<'EOF'\nno such command\nEOF\nsluice run", ""},
	} {
		var errs []error
		known := make(map[string]bool)
		for _, words := range commands(tt.text) {
			if err := c.check(words, known); err != nil {
				errs = append(errs, err)
			}
		}
		if tt.want == "" && len(errs) > 0 || tt.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.text, errs, tt.want)
		}
	}
}

// typed returns the commands of a session.
func typed(text string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			lines.WriteString(command)
		}
	}
	return lines.String()
}

var hereDocument = regexp.MustCompile(`(?ms)<<-?\s*['"]?(\w+)['"]?(.*?)$.*?^\s*(\w+)$`)

// commands splits the text of a shell into its commands, and those into words,
// with those of $(…) as commands of their own.
func commands(text string) (all [][]string) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	text = hereDocument.ReplaceAllString(text, "$2")
	var words []string
	var word strings.Builder
	begun := false // the word may be empty and quoted
	var quote rune
	endWord := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	end := func() {
		endWord()
		if len(words) > 0 {
			all = append(all, words)
		}
		words = nil
	}
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		c := runes[i]
		switch {
		case c == '$' && quote != '\'' && i+1 < len(runes) && runes[i+1] == '(':
			depth, from := 0, i+2
			for i++; i < len(runes); i++ {
				if runes[i] == '(' {
					depth++
				} else if runes[i] == ')' {
					if depth--; depth == 0 {
						break
					}
				}
			}
			all = append(all, commands(string(runes[from:min(i, len(runes))]))...)
			begun = true
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				word.WriteRune(c)
			}
		case c == '\'' || c == '"':
			quote, begun = c, true
		case c == '#' && !begun:
			for i+1 < len(runes) && runes[i+1] != '\n' {
				i++
			}
		case strings.ContainsRune("\n;|&", c):
			end()
		case c == ' ' || c == '\t':
			endWord()
		default:
			begun = true
			word.WriteRune(c)
		}
	}
	end()
	return all
}

// program has the commands and flags of a binary, to check documents against.
type program struct {
	root    string
	sluice  string // the binary
	targets []string

	mu   sync.Mutex
	help map[string]string
}

func newCommands(t *testing.T) *program {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	c := &program{root: root(t), sluice: buildSluice(t), help: make(map[string]string)}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(string(makefile), -1) {
		c.targets = append(c.targets, m[1])
	}
	return c
}

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sluice-doctest-")
	if err != nil {
		return "", err
	}
	return dir + "/sluice", localstack.Build(context.Background(), dir+"/sluice", module+"/cmd/sluice")
})

func buildSluice(t *testing.T) string {
	t.Helper()
	sources(t)
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

func TestMain(m *testing.M) {
	code := m.Run()
	if binary, err := built(); err == nil {
		os.RemoveAll(filepath.Dir(binary)) //nolint:errcheck // a temporary folder
	}
	os.Exit(code)
}

var (
	assignment = regexp.MustCompile(`^\w+=`)
	dashed     = regexp.MustCompile(`^--?[a-z]`)
)

func (c *program) check(words []string, known map[string]bool) error {
	for len(words) > 0 && (assignment.MatchString(words[0]) || slices.Contains([]string{"sudo", "exec", "time", "nohup", "do", "then", "else", "if", "while", "!"}, words[0])) {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil
	}
	switch name := words[0]; {
	case slices.Contains([]string{"for", "done", "fi", "…", "..."}, name):
	case name == "alias":
		for _, w := range words[1:] {
			alias, _, _ := strings.Cut(w, "=")
			known[alias] = true
		}
	case name == "sluice" || filepath.Base(name) == "sluice":
		return c.checkSluice(words[1:])
	case name == "make":
		for _, w := range words[1:] {
			if !strings.Contains(w, "=") && !strings.HasPrefix(w, "-") && !slices.Contains(c.targets, w) {
				return fmt.Errorf("the Makefile has no target %s", w)
			}
		}
	case name == "go":
		for i, w := range words[1:] {
			if words[i] == "-o" || strings.HasPrefix(w, "-o=") {
				known[strings.TrimPrefix(w, "-o=")] = true
				continue
			}
			dir := strings.TrimSuffix(strings.TrimSuffix(w, "..."), "/")
			if strings.HasPrefix(w, "./") {
				if _, err := os.Stat(filepath.Join(c.root, dir)); err != nil {
					return fmt.Errorf("there is no package %s", w)
				}
			}
		}
	case known[name] || known[strings.TrimPrefix(name, "./")] || slices.Contains(foreign, name):
	default:
		return fmt.Errorf("%s is unknown: of sluice, make, go, what the page builds or gives an alias, and the list in internal/doctest/commands_test.go", name)
	}
	return nil
}

// checkSluice walks down the commands as far as words name them.
func (c *program) checkSluice(words []string) error {
	path := []string{}
	for _, w := range words {
		help, err := c.helpOf(path)
		if err != nil {
			return err
		}
		switch {
		case dashed.MatchString(w):
			flag, _, _ := strings.Cut(w, "=")
			if !regexp.MustCompile(`(?m)(^|[\s,])` + regexp.QuoteMeta(flag) + `\b([^-]|$)`).MatchString(help) {
				return fmt.Errorf("sluice %s has no flag %s", strings.Join(path, " "), flag)
			}
		case regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(w) + ` +`).MatchString(afterCommands(help)):
			path = append(path, w)
		case afterCommands(help) != "" && w != "…" && !strings.HasPrefix(w, "<"):
			return fmt.Errorf("sluice %s has no command %s", strings.Join(path, " "), w)
		}
	}
	_, err := c.helpOf(path)
	return err
}

// afterCommands is the list of commands in a help text.
func afterCommands(help string) string {
	_, list, _ := strings.Cut(help, "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\nFlags:")
	return list
}

func (c *program) helpOf(path []string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := strings.Join(path, " ")
	if text, ok := c.help[key]; ok {
		return text, nil
	}
	out, err := exec.Command(c.sluice, append(slices.Clone(path), "--help")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("sluice %s --help: %w\n%s", key, err, out)
	}
	c.help[key] = string(out)
	return string(out), nil
}
