package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/reindex"
)

func TestLeftOut(t *testing.T) {
	for _, tt := range []struct {
		items, lines int
		last         string
	}{
		{1, 1, `left out: {"id":{"S":"0"}}: no such attribute`},
		{20, 20, `left out: {"id":{"S":"19"}}: no such attribute`},
		{250, 21, "left out: 230 more"},
	} {
		t.Run(fmt.Sprint(tt.items), func(t *testing.T) {
			var out strings.Builder
			l := leftOut{w: &out}
			for i := range tt.items {
				l.add(item.Of(item.String("id", fmt.Sprint(i))), errors.New("no such attribute"))
			}
			l.end()
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if len(lines) != tt.lines || lines[len(lines)-1] != tt.last {
				t.Errorf("%d lines, the last %q; want %d and %q", len(lines), lines[len(lines)-1], tt.lines, tt.last)
			}
		})
	}
}

// Items that do not get into an index are left out by a flag, which is named.
func TestIncomplete(t *testing.T) {
	err := incomplete(&reindex.IncompleteError{Index: "a-2", Failed: 3})
	if want := "3 items or documents do not get into index a-2: mend them, or the mapping, and start again, or skip them by --skip-failed"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if err := incomplete(io.EOF); err != io.EOF {
		t.Errorf("another error: %v", err)
	}
}

// Indices that differ by what is parked say where to look and what to do.
func TestDiffering(t *testing.T) {
	err := differing(fmt.Errorf("swapping: %w", &reindex.NotEqualError{Comparison: reindex.Comparison{
		Current: "a-1", Other: "a-2", Differences: []reindex.Difference{{ID: "p-6", Other: 3}},
	}}))
	for _, want := range []string{
		"p-6: not in a-1, version 3 in a-2", "sluice dlq list", "redrive", "changes that are not handled yet", "reindex.Writer", "swap --force, finish",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q: %v", want, err)
		}
	}
	if err := differing(io.EOF); err != io.EOF {
		t.Errorf("another error: %v", err)
	}
	if err := differing(nil); err != nil {
		t.Errorf("none: %v", err)
	}
}
