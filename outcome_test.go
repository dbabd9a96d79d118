package sluice_test

import (
	"errors"
	"testing"

	"github.com/sluicehq/sluice"
)

func TestOutcomes(t *testing.T) {
	down := errors.New("down")
	if sluice.Permanent(nil) != nil {
		t.Error("Permanent(nil) is an error")
	}
	for _, tt := range []struct {
		err       error
		text      string
		permanent bool
		is        bool // down is found in it
	}{
		{sluice.Skip("not active"), "skipped: not active", false, false},
		{sluice.RetryAfter(2e9, down), "retry after 2s: down", false, true},
		{sluice.Permanent(down), "down", true, true},
		{sluice.RetryAfter(2e9, sluice.Permanent(down)), "retry after 2s: down", true, true},
		{&sluice.Remaining{Err: down}, "down", false, true},
		{&sluice.Remaining{Err: sluice.Permanent(down)}, "down", true, true},
		{&sluice.Remaining{}, "work remains", false, false},
	} {
		if tt.err.Error() != tt.text || sluice.IsPermanent(tt.err) != tt.permanent || errors.Is(tt.err, down) != tt.is {
			t.Errorf("%#v: %q, permanent %v, is %v", tt.err, tt.err, sluice.IsPermanent(tt.err), errors.Is(tt.err, down))
		}
	}
}
