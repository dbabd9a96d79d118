package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/access"
)

// The path of a key file is relative to the configuration, not to the process's folder.
func TestLetterKeys(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "letter.key"), []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]struct {
		keys bool
		err  string
	}{
		"":                       {},
		"keyFile: letter.key":    {keys: true},
		"keyFile: " + dir + "/x": {err: dir + "/x does not exist"},
		"keyFile: none":          {err: "key file " + filepath.Join(dir, "none") + " does not exist"},
	} {
		c, err := Parse("f", dir, []byte("source: {tables: [orders], start: LATEST}\nroutes: [{name: x, on: 'a#*', log: {}}]\ndeadLetter: {"+text+"}\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := c.LetterKeys(func(string) string { return "" })
		if keys.IsZero() == want.keys || (err != nil) != (want.err != "") || err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%q: %v", text, err)
		}
		if keys, err := c.LetterKeys(func(name string) string {
			return map[string]string{access.LetterKeyEnv: strings.Repeat("e", 32)}[name]
		}); keys.IsZero() || err != nil {
			t.Errorf("%q: the environment goes before it: %v", text, err)
		}
	}
}
