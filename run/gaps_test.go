package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice"
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
	gap := sluice.Gap{Table: "orders", ShardID: "s", After: "5"}
	for _, c := range []struct {
		name   string
		change func(r *http.Request, l *lossy)
		code   int
		body   string
		left   int
	}{
		{"from here", func(*http.Request, *lossy) {}, 200, gap.String() + "\ngaps acknowledged: 1\n", 0},
		{"IPv6", func(r *http.Request, _ *lossy) { r.RemoteAddr = "[::1]:5" }, 200, gap.String() + "\ngaps acknowledged: 1\n", 0},
		{"none", func(_ *http.Request, l *lossy) { l.open = nil }, 200, "gaps acknowledged: 0\n", 0},
		{"from elsewhere", func(r *http.Request, _ *lossy) { r.RemoteAddr = "192.0.2.7:5" }, 403, "on the machine of the daemon only", 1},
		{"from a page", func(r *http.Request, _ *lossy) { r.Header.Set("Origin", "http://example.com") }, 403, "", 1},
		{"the store fails", func(_ *http.Request, l *lossy) { l.err = errors.New("disk full") }, 500, "disk full", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &lossy{open: []sluice.Gap{gap}}
			var log bytes.Buffer
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:9464/gaps/acknowledge", nil)
			r.RemoteAddr = "127.0.0.1:5"
			c.change(r, l)
			w := httptest.NewRecorder()
			acknowledge(l, slog.New(slog.NewTextHandler(&log, nil))).ServeHTTP(w, r)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.body) || len(l.open) != c.left {
				t.Errorf("%d %q, %d gaps are left; want %d %q and %d", w.Code, w.Body, len(l.open), c.code, c.body, c.left)
			}
			if logged := strings.Contains(log.String(), "records after 5"); logged != (strings.Contains(c.body, "records after 5")) {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

// A daemon that was away for too long is not ready until somebody has seen what
// it lost, whatever restarts there are.
func TestDaemonWithAGap(t *testing.T) {
	noAWS(t)
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
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
	if code, body := c.ask("GET", "/readyz"); code != 503 || !strings.Contains(body, gap) || !strings.Contains(body, "/gaps/acknowledge") {
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

// Who reads that a gap is to be acknowledged reads how, too.
func TestHowTo(t *testing.T) {
	l := &lossy{}
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 9464} }
	if got := howTo([]string{"a"}, l, at("127.0.0.1")); len(got) != 1 {
		t.Errorf("without gaps: %q", got)
	}
	l.open = make([]sluice.Gap, 1)
	for ip, want := range map[string]string{
		"127.0.0.1": "curl -X POST http://127.0.0.1:9464/gaps/acknowledge",
		"::1":       "curl -X POST http://[::1]:9464/gaps/acknowledge",
		"0.0.0.0":   "curl -X POST http://127.0.0.1:9464/gaps/acknowledge",
		"::":        "curl -X POST http://127.0.0.1:9464/gaps/acknowledge",
		"192.0.2.7": "--listen on a loopback address",
	} {
		if got := howTo([]string{"a"}, l, at(ip)); len(got) != 2 || !strings.HasSuffix(got[1], want) {
			t.Errorf("with one, listening on %s: %q", ip, got)
		}
	}
}
