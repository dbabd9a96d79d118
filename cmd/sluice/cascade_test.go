package main

import (
	"bytes"
	"testing"
)

// That the parent is there is the command's error, and not beside that a word
// about nothing more to do.
func TestDeletedOfAParentThatIsThere(t *testing.T) {
	var out bytes.Buffer
	d := deleted{rows: map[string]int{}, sent: map[string]int{}, stopped: true, Skipped: "parent exists again"}
	if err := d.print(&out, false, nil); err != nil || out.Len() > 0 {
		t.Errorf("%v, %s", err, out.String())
	}
	d.stopped, d.Skipped = false, "deleted by a time to live"
	if err := d.print(&out, false, nil); err != nil || out.String() != "nothing more to do: deleted by a time to live\n" {
		t.Errorf("%v, %s", err, out.String())
	}
}
