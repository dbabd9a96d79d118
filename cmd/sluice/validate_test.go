package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/config"
)

// Each mistake is counted and told, also where those with a place are joined to
// others.
func TestMistakesAreCounted(t *testing.T) {
	placed := config.Errors{{File: "f", Line: 1, Problem: "a"}, {File: "f", Line: 2, Problem: "b"}}
	one := errors.New("one")
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{one, 1},
		{errors.Join(one, errors.Join(one, one)), 3},
		{errors.Join(placed, one), 3},
		{placed, 2},
		{fmt.Errorf("within: %w", placed), 2},
		{fmt.Errorf("both: %w, %w", one, one), 1},
	} {
		var v validation
		v.add(tt.err)
		if len(v.Mistakes) != tt.want || v.Valid != (tt.err == nil) {
			t.Errorf("%v: %+v", tt.err, v)
		}
	}
	var v validation
	v.add(errors.Join(one, one))
	var stdout, stderr strings.Builder
	if err := v.print(&stdout, &stderr); err != nil || !strings.HasSuffix(stderr.String(), " has 2 mistakes\n") {
		t.Errorf("%v, %s", err, &stderr)
	}
}
