package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/page"
)

// In a pipe the status is printed again and again, also after the daemon was away.
func TestTop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		c := &cli{stdout: &out, stderr: &out}
		ctx, cancel := context.WithCancel(t.Context())
		looks := 0
		err := c.watch(ctx, 2*time.Second, false, func(context.Context) (page.Status, error) {
			switch looks++; looks {
			case 2:
				return page.Status{}, errors.New("connection refused")
			case 4:
				cancel()
			}
			return page.Status{Application: "shop", Ready: true, Started: time.Now(), Routes: []page.Route{{Route: "mail\x1b[31m", State: "works"}}}, nil
		})
		if text := out.String(); err != nil || looks != 4 || strings.Count(text, "\nshop, version ") != 2 || !strings.Contains(text, "00:00:02: no answer: connection refused\n") || strings.Contains(text, "\x1b") {
			t.Errorf("%v after %d looks:\n%s", err, looks, text)
		}
		down := errors.New("nobody listens")
		if err := c.watch(t.Context(), time.Second, false, func(context.Context) (page.Status, error) { return page.Status{}, down }); !errors.Is(err, down) {
			t.Errorf("%v", err)
		}
	})
}

// With --json each status is a line, and nothing else is printed.
func TestTopJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, problems strings.Builder
		c := &cli{stdout: &out, stderr: &problems}
		ctx, cancel := context.WithCancel(t.Context())
		looks := 0
		err := c.watch(ctx, time.Second, true, func(context.Context) (page.Status, error) {
			switch looks++; looks {
			case 2:
				return page.Status{}, errors.New("connection refused")
			case 4:
				cancel()
			}
			return page.Status{Application: "shop", Routes: []page.Route{{Route: "a<b\x1b[31m"}}}, nil
		})
		if err != nil || strings.Count(problems.String(), "no answer: connection refused\n") != 1 {
			t.Errorf("%v: %s", err, problems.String())
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		for _, line := range lines {
			var st page.Status
			if err := json.Unmarshal([]byte(line), &st); err != nil || st.Application != "shop" || !strings.Contains(line, "a<b") {
				t.Errorf("%v: %s", err, line)
			}
		}
		if len(lines) != 2 {
			t.Errorf("%d lines: %q", len(lines), lines)
		}
	})
}

// On a terminal a text takes the place of the one before, as far as there is room.
func TestFrame(t *testing.T) {
	for _, tt := range []struct {
		text          string
		width, height int
		want          string
	}{
		{"one\ntwo\n", 80, 24, "\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J\r\n"},
		{"one\ntwo\nthree\n", 4, 3, "\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J\r\n"},
		{"longer\n", 4, 1, "\x1b[Hlon…\x1b[K\x1b[J\r\n"},
	} {
		if got := frame(tt.text, tt.width, tt.height); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}
