package deptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// licences are the allowed licences of linked modules, by SPDX. They only ask users of
// Sluice to pass on their texts.
var licences = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// Everything that the library and its commands are linked with has a licence of
// the list.
func TestLicences(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-json=Module", "./...")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	known, err := assets.DefaultClassifier()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if m := p.Module; m != nil && !seen[m.Path] {
			seen[m.Path] = true
			if found := licencesIn(t, known, m.Dir); len(found) == 0 || slices.ContainsFunc(found, func(id string) bool { return !slices.Contains(licences, id) }) {
				t.Errorf("%s %s has the licences %q, want some of %q alone", m.Path, m.Version, found, licences)
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d modules are known", len(seen))
	}
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying)([.-].*)?$`)

func licencesIn(t *testing.T, known *classifier.Classifier, dir string) (ids []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.IsDir() || !licenceFile.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range known.Match(text).Matches {
			if m.MatchType == "License" && !slices.Contains(ids, m.Name) {
				ids = append(ids, m.Name)
			}
		}
	}
	return ids
}
