package doctest

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The commands of a session print the lines on its page.
func TestSessions(t *testing.T) {
	binary := buildSluice(t)
	for _, p := range pages(t) {
		dir := t.TempDir()
		for _, b := range p.blocks {
			writeFile(t, dir, b)
			if b.kind != "console" {
				continue
			}
			for _, s := range steps(b.text) {
				got := perform(t, dir, binary, s.command)
				if !matches(s.output, got) {
					t.Errorf("%s:%d: %s printed\n%swant\n%s", b.page, b.line, s.command, got, s.output)
				}
			}
		}
	}
}

// step is a command of a session with its output.
type step struct{ command, output string }

func steps(text string) (all []step) {
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, step{command: strings.TrimSpace(command)})
		} else if len(all) > 0 {
			all[len(all)-1].output += line
		}
	}
	return all
}

// perform runs a command without credentials of anybody.
func perform(t *testing.T, dir, binary, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + filepath.Dir(binary) + ":/usr/bin:/bin", "HOME=" + dir, "AWS_EC2_METADATA_DISABLED=true", "AWS_REGION=us-east-1", "NO_COLOR=1"}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // a session may show a failure
	return out.String()
}

// matches reports whether got is the output on a page. There, a line "..." stands for
// any lines, and … for any text in a line.
func matches(want, got string) bool {
	trim := func(s string) string {
		lines := strings.Split(strings.TrimSpace(s), "\n")
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " \t")
		}
		return strings.Join(lines, "\n")
	}
	var pattern strings.Builder
	for line := range strings.Lines(trim(want) + "\n") {
		if strings.TrimSpace(line) == "..." {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*"))
	}
	return regexp.MustCompile(`\A` + pattern.String() + `\z`).MatchString(trim(got) + "\n")
}

func TestSessionsAreCompared(t *testing.T) {
	for _, tt := range []struct {
		want, got string
		same      bool
	}{
		{"a\nb\n", "a\nb\n", true},
		{"a\n", "a  \n\n", true},
		{"", "", true},
		{"a\n...\nc\n", "a\nb\nb\nc\n", true},
		{"a\n...\n", "a\n", true},
		{"a … c\n", "a b.b c\n", true},
		{"a\n", "b\n", false},
		{"a\n", "a\nb\n", false},
		{"a.c\n", "abc\n", false},
		{"a … c\n", "a\nc\n", false},
		{"", "a\n", false},
	} {
		if matches(tt.want, tt.got) != tt.same {
			t.Errorf("%q and %q: want %v", tt.want, tt.got, tt.same)
		}
	}
	got := steps("$ a\nx\ny\n$ b\n")
	if len(got) != 2 || got[0] != (step{"a", "x\ny\n"}) || got[1] != (step{"b", ""}) {
		t.Errorf("steps are %q", got)
	}
	if out := perform(t, t.TempDir(), buildSluice(t), "sluice --version; exit 1"); !strings.HasPrefix(out, "sluice ") {
		t.Errorf("printed %q", out)
	}
}
