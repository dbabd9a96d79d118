package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/sluicehq/sluice/item"
)

// That the parent is there is the command's error, and not beside that a word
// about nothing more to do.
func TestDeletedOfAParentThatIsThere(t *testing.T) {
	var out bytes.Buffer
	d := deleted{Rows: map[string]int{}, Sent: map[string]int{}, stopped: true, Skipped: "parent exists again"}
	if err := d.print(&out, false); err != nil || out.Len() > 0 {
		t.Errorf("%v, %s", err, out.String())
	}
	d.stopped, d.Skipped = false, "deleted by a time to live"
	if err := d.print(&out, false); err != nil || out.String() != "nothing more to do: deleted by a time to live\n" {
		t.Errorf("%v, %s", err, out.String())
	}
}

// A key of another type than the table's is said in words of the command.
func TestKeyHint(t *testing.T) {
	key := item.Of(item.Number("map_id", "2"))
	for text, hint := range map[string]bool{
		"ValidationException: One or more parameter values were invalid: Condition parameter type does not match schema type": true,
		"ValidationException: The provided key element does not match the schema":                                             true,
		"refused": false,
	} {
		want := text
		if hint {
			want = `--key: an attribute of map_id=2 has another type in the tables: a text is {"id":"7"}, a number {"id":7}`
		}
		if err := keyHint(key, errors.New(text)); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := keyHint(key, nil); err != nil {
		t.Error(err)
	}
}
