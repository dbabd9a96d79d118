//go:build unix

package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/fleettest"
)

func TestGapsOf(t *testing.T) {
	begin := time.Now()
	var effects []fleettest.Effect
	for _, e := range []struct {
		worker, item string
		ms           int
		repeated     bool
	}{
		{"one", "a", 0, false},
		{"one", "b", 10, false},
		{"one", "a", 100, false},
		{"two", "a", 300, true}, // the old owner's record again
		{"two", "a", 350, false},
		{"one", "b", 900, false},
		{"two", "a", 1000, false},
		{"three", "b", 1500, false},
	} {
		effects = append(effects, fleettest.Effect{Worker: e.worker, Item: e.item, At: begin.Add(time.Duration(e.ms) * time.Millisecond), Repeated: e.repeated})
	}
	if got, want := gapsOf(effects), []float64{250, 600}; !slices.Equal(got, want) {
		t.Errorf("gaps %v, want %v", got, want)
	}
}

// A wait ends in time, and says what did not happen.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{patience: 10 * time.Second}
		begin := time.Now()
		await := func(missing func() (string, error)) string {
			begin = time.Now()
			if err := f.await(t.Context(), missing); err != nil {
				return err.Error()
			}
			return ""
		}
		if got := await(func() (string, error) {
			if time.Since(begin) < 9*time.Second {
				return "soon", nil
			}
			return "", nil
		}); got != "" {
			t.Errorf("after %v: %s", time.Since(begin), got)
		}
		if got := await(func() (string, error) { return "nothing came", nil }); got != "after 10 s: nothing came" || time.Since(begin) > 11*time.Second {
			t.Errorf("after %v: %q", time.Since(begin), got)
		}
		if got := await(func() (string, error) { return "", errors.New("broken") }); got != "broken" || time.Since(begin) > 0 {
			t.Errorf("after %v: %q", time.Since(begin), got)
		}
	})
}

func TestFlags(t *testing.T) {
	for want, spoil := range map[string]func(*bench) string{
		"-only is": func(*bench) string { return "everything" },
		"-rounds":  func(b *bench) string { b.rounds = 0; return "start" },
	} {
		b := bench{rounds: 1}
		if err := b.run(t.Context(), spoil(&b)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
