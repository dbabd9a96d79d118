package sluice_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/outcomes"
)

func TestOutcomes(t *testing.T) {
	down := errors.New("down")
	if sluice.Permanent(nil) != nil {
		t.Error("Permanent(nil) is an error")
	}
	if sluice.Overloaded(nil) != nil {
		t.Error("Overloaded(nil) is an error")
	}
	for _, tt := range []struct {
		err       error
		text      string
		permanent bool
		is        bool // down is found in it
		skip      bool
	}{
		{sluice.Skip("not active"), "skipped: not active", false, false, true},
		{sluice.RetryAfter(2e9, down), "retry after 2s: down", false, true, false},
		{sluice.Permanent(down), "down", true, true, false},
		{sluice.RetryAfter(2e9, sluice.Permanent(down)), "retry after 2s: down", true, true, false},
		{&sluice.Remaining{Err: down}, "down", false, true, false},
		{&sluice.Remaining{Err: sluice.Permanent(down)}, "down", true, true, false},
		{&sluice.Remaining{}, "work remains", false, false, false},
		{fmt.Errorf("search 1: %w", sluice.Skip("old")), "search 1: skipped: old", false, false, true},
		{errors.Join(sluice.Skip("old"), down), "skipped: old\ndown", false, true, false},
		{sluice.Permanent(sluice.Skip("old")), "skipped: old", true, false, false},
		{sluice.RetryAfter(2e9, sluice.Skip("old")), "retry after 2s: skipped: old", false, false, false},
		{&sluice.Remaining{Err: sluice.Skip("old")}, "skipped: old", false, false, false},
		{sluice.Overloaded(down), "down", false, true, false},
		{sluice.Overloaded(sluice.Permanent(down)), "down", true, true, false},
		{sluice.Overloaded(sluice.Skip("old")), "skipped: old", false, false, false},
	} {
		if tt.err.Error() != tt.text || sluice.IsPermanent(tt.err) != tt.permanent || errors.Is(tt.err, down) != tt.is || sluice.IsSkip(tt.err) != tt.skip {
			t.Errorf("%#v: %q, permanent %v, is %v, skip %v", tt.err, tt.err, sluice.IsPermanent(tt.err), errors.Is(tt.err, down), sluice.IsSkip(tt.err))
		}
	}
}

func TestIsOverloaded(t *testing.T) {
	full := sluice.Overloaded(errors.New("429"))
	for err, want := range map[error]bool{
		full:                                      true,
		fmt.Errorf("write: %w", full):             true,
		sluice.RetryAfter(2e9, full):              true,
		&sluice.Remaining{Err: full}:              true,
		errors.New("429"):                         false,
		sluice.RetryAfter(2e9, errors.New("429")): false,
	} {
		if outcomes.IsOverloaded(err) != want {
			t.Errorf("IsOverloaded(%#v) is %v", err, !want)
		}
	}
	if outcomes.IsOverloaded(nil) {
		t.Error("nil is an overload")
	}
}
