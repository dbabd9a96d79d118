//go:build integration

package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice"
)

func init() {
	// sinks names what its routes handle. Its index is down while a file is missing.
	children["sinks"] = App{Name: "sinks", Routes: func(_ context.Context, s Setup) (sluice.Matcher, error) {
		s.Check("index", func(context.Context) error {
			if _, err := os.Stat(s.Env("INDEX_FILE")); err != nil {
				return refused
			}
			return nil
		}, "search", "both")
		return twoSinks(func(route, id string) { fmt.Println("handled", route, id) }), nil
	}}
}

// What a sink that is down has held is there after a kill -9 and after an orderly
// stop, and is handled when the sink is back.
func TestHeldForSinkAndKilled(t *testing.T) {
	tb := newTable(t, images)
	folder := t.TempDir()
	file, state := filepath.Join(folder, "index"), filepath.Join(folder, "state.db")
	tb.put("one")
	start := func() *child {
		c := startChild(t, "sinks", []string{"INDEX_FILE=" + file}, tb.args(state, "--start", "TRIM_HORIZON", "--grace", "1s")...)
		c.until("handled alert one", 1)
		if code, body := c.ask("GET", "/readyz"); code != 503 || !strings.Contains(body, "sink index is down since ") || !strings.Contains(body, "connection refused") {
			t.Errorf("/readyz: %d %s", code, body)
		}
		if code, body := c.ask("GET", "/startedz"); code != 200 {
			t.Errorf("/startedz: %d %s", code, body)
		}
		return c
	}
	c := start()
	c.signal(syscall.SIGKILL)
	c.exit()
	c = start()
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, c.output())
	}
	c = start()
	if strings.Contains(c.output(), "handled search") || strings.Contains(c.output(), "handled both") {
		t.Errorf("a held route was called:\n%s", c.output())
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.until("handled search one", 1)
	c.until("handled both one", 1)
	tb.put("two")
	c.until("handled both two", 1)
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, c.output())
	}

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	c = startChild(t, "sinks", []string{"INDEX_FILE=" + file, "SLUICE_REQUIRE_SINKS=true"}, tb.args(state)...)
	if code := c.exit(); code != 1 || !strings.Contains(c.output(), "sinks: dial tcp: connection refused") {
		t.Errorf("exit %d with --require-sinks:\n%s", code, c.output())
	}
}
