//go:build integration

package daemon

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
)

// Two daemons share a state table. A pause at one holds the route at both within 5 s,
// also at one that takes the shard over, until it is resumed at the other.
func TestTwoDaemonsPause(t *testing.T) {
	tb, place := newTable(t, images), stateTable(t)
	first := startChild(t, "echo", nil, tb.args(place, "--start", "TRIM_HORIZON")...)
	tb.put("one")
	first.until("handled one", 1)
	second := startChild(t, "echo", nil, tb.args(place, "--start", "TRIM_HORIZON")...)
	second.until("msg=starting", 1)
	localtest.Await(t, "the second worker", func() string { // it claims, so that it hears
		_, body := second.ask("GET", "/")
		if strings.Contains(body, " of 1 open shard, ") {
			return ""
		}
		return body
	})
	begin := time.Now()
	if code, body := second.ask("POST", "/routes/pause?route=*%23*&for=1h"); code != 200 || strings.Contains(body, "warning") {
		t.Fatalf("pause: %d %s", code, body)
	}
	first.until("route paused by an operator", 1)
	second.until("route paused by an operator", 1)
	t.Logf("both had paused after %v", time.Since(begin))
	tb.put("two", "three")
	waiting := func(c *child) func() string {
		return func() string {
			_, body := c.ask("GET", "/routes")
			if strings.Contains(body, `"waitingRecords":2`) {
				return ""
			}
			return body
		}
	}
	reads, other := first, second
	localtest.Await(t, "two waiting records", func() string {
		if waiting(first)() == "" {
			return ""
		}
		if reads, other = second, first; waiting(second)() == "" {
			return ""
		}
		reads, other = first, second
		return first.output()
	})
	reads.signal(syscall.SIGTERM)
	if code := reads.exit(); code != 0 {
		t.Fatalf("exit code %d after SIGTERM:\n%s", code, reads.output())
	}
	localtest.Await(t, "two waiting records at the next owner", waiting(other))
	if out := first.output() + second.output(); strings.Contains(out, "handled t") {
		t.Fatalf("handled in the pause:\n%s", out)
	}
	if code, body := other.ask("POST", "/routes/resume?route=*%23*"); code != 200 {
		t.Fatalf("resume: %d %s", code, body)
	}
	other.until("handled two", 1)
	other.until("handled three", 1)
}
