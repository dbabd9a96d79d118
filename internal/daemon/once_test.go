package daemon

import (
	"testing"
)

// A command in a message can be typed unchanged.
func TestWord(t *testing.T) {
	for text, want := range map[string]string{
		"/var/lib/sluice.db": "/var/lib/sluice.db", "my state.db": "'my state.db'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "": "''",
	} {
		if got := word(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
