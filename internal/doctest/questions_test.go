package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The pages and headings that answer the questions of testdata/questions.txt exist.
func TestQuestions(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "questions.txt"))
	if err != nil {
		t.Fatal(err)
	}
	anchors := make(map[string]map[string]bool)
	for _, p := range pages(t) {
		anchors[p.name] = p.anchors()
	}
	questions := 0
	for i, line := range strings.Split(string(text), "\n") {
		if !question.MatchString(line) {
			continue
		}
		questions++
		targets := answers(line)
		if len(targets) == 0 {
			t.Errorf("questions.txt:%d: names no page: end the line with — `page.md#anchor`", i+1)
		}
		for _, target := range targets {
			if err := follow(root(t), anchors, "questions.txt", target); err != nil {
				t.Errorf("questions.txt:%d: %s: %v", i+1, target, err)
			}
		}
	}
	if questions < 100 {
		t.Errorf("only %d questions found", questions)
	}
}

var (
	question   = regexp.MustCompile(`^\d+\. \*\*`)
	backquoted = regexp.MustCompile("`([^`]+)`")
)

// answers returns the pages after the last dash of a question's line.
func answers(line string) (targets []string) {
	i := strings.LastIndex(line, "— ")
	if i < 0 {
		return nil
	}
	for _, m := range backquoted.FindAllStringSubmatch(line[i:], -1) {
		targets = append(targets, m[1])
	}
	return targets
}

func TestQuestionsWithMistakes(t *testing.T) {
	anchors := map[string]map[string]bool{"links_test.go": {"a": true}}
	got := answers("1. **Is `x` — y?** Yes — `z`. — `links_test.go#a`, `links_test.go#b`, `no.md`")
	if want := "links_test.go#a links_test.go#b no.md"; strings.Join(got, " ") != want {
		t.Fatalf("got %q, want %s", got, want)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for i, fine := range []bool{true, false, false} {
		if err := follow(dir, anchors, "questions.txt", got[i]); (err == nil) != fine {
			t.Errorf("%s: %v", got[i], err)
		}
	}
}
