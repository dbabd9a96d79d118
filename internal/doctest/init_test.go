package doctest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice/internal/config"
)

// The README shows the file that its sluice init writes.
func TestReadmeShowsWhatInitWrites(t *testing.T) {
	all := pages(t)
	readme := all[slices.IndexFunc(all, func(p page) bool { return p.name == "README.md" })]
	var shown *block
	command := ""
	for i, b := range readme.blocks {
		if b.file == "sluice.yaml" {
			shown = &readme.blocks[i]
			break
		}
		for line := range strings.Lines(b.text) {
			if strings.HasPrefix(line, "sluice init ") {
				command = strings.TrimSpace(line)
			}
		}
	}
	if shown == nil || command == "" {
		t.Fatalf("README.md: block %v, command %q", shown, command)
	}
	written := perform(t, t.TempDir(), buildSluice(t), command+" --config -")
	want, err := config.Parse("sluice.yaml", "", []byte(written), nil)
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, written)
	}
	got, err := config.Parse("README.md", "", []byte(shown.text), nil)
	if err != nil {
		t.Fatal(err)
	}
	// Exported fields only: the others are places in the text.
	exported := cmp.FilterPath(func(p cmp.Path) bool {
		f, ok := p.Last().(cmp.StructField)
		return ok && !strings.Contains("ABCDEFGHIJKLMNOPQRSTUVWXYZ", f.Name()[:1])
	}, cmp.Ignore())
	if diff := cmp.Diff(want, got, exported); diff != "" {
		t.Errorf("%s writes (-), README.md:%d shows (+):\n%s", command, shown.line, diff)
	}
}
