package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/item"
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
