package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/streamtest"
)

// lossy has gaps.
type lossy struct {
	open []sluice.Gap
	err  error
}

func (l *lossy) Gaps() []sluice.Gap { return l.open }

func (l *lossy) AcknowledgeGaps(_ context.Context, gaps ...sluice.Gap) error {
	if l.err == nil {
		l.open = l.open[len(gaps):]
	}
	return l.err
}

func TestAcknowledge(t *testing.T) {
	gap := sluice.Gap{Table: "orders", ShardID: "s", After: recordtest.Sequence(5)}
	for _, c := range []struct {
		name   string
		change func(l *lossy)
		code   int
		body   string
		left   int
	}{
		{"one", func(*lossy) {}, 200, `"lost": "` + gap.String() + `"`, 0},
		{"none", func(l *lossy) { l.open = nil }, 200, `"gaps": []`, 0},
		{"the store fails", func(l *lossy) { l.err = errors.New("disk full") }, 500, "disk full", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &lossy{open: []sluice.Gap{gap}}
			var log bytes.Buffer
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:9464/gaps/acknowledge", nil)
			c.change(l)
			w := httptest.NewRecorder()
			acknowledgeGaps(l, slog.New(slog.NewTextHandler(&log, nil))).ServeHTTP(w, r)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.body) || len(l.open) != c.left {
				t.Errorf("%d %q, %d gaps are left; want %d %q and %d", w.Code, w.Body, len(l.open), c.code, c.body, c.left)
			}
			if logged := strings.Contains(log.String(), "records after "+string(gap.After)); logged != (strings.Contains(c.body, "records after "+string(gap.After))) {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

// A daemon that was away for too long is not ready until somebody acknowledges the gap,
// over restarts too.
func TestDaemonWithAGap(t *testing.T) {
	noAWS(t)
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id", OpaqueShardIDs: true}) // a shard may be old enough to lose records
	args := []string{"--table", "orders", "--start", "TRIM_HORIZON", "--listen", "127.0.0.1:0",
		"--state", filepath.Join(t.TempDir(), "state.db"), "--endpoint-dynamodb", svc.URL()}
	const lost = "shard %s: records after %s and before %s were trimmed before they were read"
	end := func(c *child) {
		t.Helper()
		c.signal(syscall.SIGTERM)
		if code := c.exit(); code != 0 {
			t.Errorf("exit %d:\n%s", code, c.output())
		}
	}

	first := table.Put(map[string]any{"id": "one"})
	c := startChild(t, "echo", nil, args...)
	c.until("handled one", 1)
	end(c)

	table.Put(map[string]any{"id": "two"})
	third := table.Put(map[string]any{"id": "three"})
	shard := table.Shards()[0].ID
	table.Trim(shard, 2)
	gap := fmt.Sprintf(lost, shard, first, third)
	c = startChild(t, "echo", nil, args...)
	c.until("handled three", 1)
	if code, body := c.ask("GET", "/readyz"); code != 503 || !strings.Contains(body, gap) || !strings.Contains(body, "sluice gaps acknowledge") {
		t.Errorf("/readyz: %d %s", code, body)
	}
	end(c)

	c = startChild(t, "echo", nil, args...)
	c.until("shard started", 1)
	if code, body := c.ask("GET", "/readyz"); code != 503 || !strings.Contains(body, gap) {
		t.Errorf("/readyz after a restart: %d %s", code, body)
	}
	if code, body := c.ask("GET", "/gaps/acknowledge"); code != 405 {
		t.Errorf("looking acknowledges: %d %s", code, body)
	}
	if code, body := c.ask("POST", "/gaps/acknowledge"); code != 200 || !strings.Contains(body, gap) {
		t.Errorf("/gaps/acknowledge: %d %s", code, body)
	}
	if code, body := c.ask("GET", "/readyz"); code != 200 {
		t.Errorf("/readyz in the end: %d %s", code, body)
	}
	end(c)
	http.DefaultClient.CloseIdleConnections()
}

// The text about a gap says how to repair it, and then how to acknowledge it. The gap
// itself has the words by which the page finds it among the reasons.
func TestGapSaysHowToRepair(t *testing.T) {
	gap := sluice.Gap{Table: "orders", StreamARN: "arn:aws:dynamodb:eu-west-1:1:table/orders/stream/2026-01-01T00:00:00.000", Next: "arn:aws:dynamodb:eu-west-1:1:table/orders/stream/2026-01-02T00:00:00.000"}
	reasons := func(gaps []sluice.Gap, repairs ...string) string {
		all := []string{"other"}
		for _, g := range gaps {
			all = append(all, g.String()+": acknowledge the gap")
		}
		return strings.Join(withRepair(all, gaps, repairs), "\n")
	}
	for _, tt := range []struct{ got, want string }{
		{reasons(nil, "sluice audit"), "other"},
		{reasons([]sluice.Gap{gap}, "sluice audit --route products --repair", "sluice recount --route points --repair"), `other
table orders: stream orders/stream/2026-01-01T00:00:00.000 was replaced by orders/stream/2026-01-02T00:00:00.000: what was written to the table between them is in neither
records are lost: first repair what the routes made of them, then acknowledge:
    sluice audit --route products --repair
    sluice recount --route points --repair
    sluice gaps acknowledge`},
		{reasons([]sluice.Gap{gap}), `other
table orders: stream orders/stream/2026-01-01T00:00:00.000 was replaced by orders/stream/2026-01-02T00:00:00.000: what was written to the table between them is in neither
records are lost: write again what the routes made of them, such as by a backfill, and then acknowledge:
    sluice gaps acknowledge`},
	} {
		if tt.got != tt.want {
			t.Errorf("got\n%s\nwant\n%s", tt.got, tt.want)
		}
	}
	if lost := gapOf(gap, nil).Lost; !strings.Contains(reasons([]sluice.Gap{gap}), "\n"+lost+"\n") {
		t.Errorf("no reason is %q", lost)
	}
}
