package snapshot

import (
	"strings"
	"testing"

	"github.com/sluicehq/sluice/state"
)

func TestTableNames(t *testing.T) {
	for name, want := range map[string]string{
		"ab":          `table "ab": want a table's name, of 3 to 255`,
		"arn:aws:x/y": `table "arn:aws:x/y": want a table's name`,
	} {
		o := testOptions(state.NewMemory())
		o.Table = name
		if _, err := New(newStub(0).config(), routed(into(&seen{})), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, err := range Scan(t.Context(), newStub(0).config(), "?", ScanOptions{}) {
		if err == nil || !strings.Contains(err.Error(), `table "?"`) {
			t.Errorf("%v", err)
		}
	}
}
