package daemon

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/streamtest"
)

// full is poisoned, and its state file cannot grow.
func init() {
	poisoned := children["poisoned"].Routes
	children["full"] = App{Name: "full", Routes: func(ctx context.Context, s Setup) (sluice.Matcher, error) {
		const room = 64 << 10
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: room}); err != nil {
			return nil, err
		}
		return poisoned(ctx, s)
	}}
}

// A daemon whose dead letters cannot be stored says so at once: positions may
// still find room, and nothing that fails gets on.
func TestNotReadyWhileDeadLettersCannotBeStored(t *testing.T) {
	noAWS(t)
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	c := startChild(t, "full", nil, "--table", "orders", "--start", "TRIM_HORIZON", "--listen", "127.0.0.1:0", "--grace", "1s",
		"--state", filepath.Join(t.TempDir(), "state.db"), "--endpoint-dynamodb", svc.URL())
	c.until("shard started", 1)
	if code, body := c.ask("GET", "/readyz"); code != 200 {
		t.Fatalf("/readyz before: %d %s", code, body)
	}
	for i := range 200 {
		table.Put(map[string]any{"id": "poison", "n": i, "fill": strings.Repeat(strconv.Itoa(i), 1000)})
	}
	c.until("dead letters failed", 1)
	code, body := c.ask("GET", "/readyz")
	if code != 503 || !strings.Contains(body, "dead letters cannot be stored since ") || !strings.Contains(body, "file too large") {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if _, body := c.ask("GET", "/metrics"); !strings.Contains(body, "\nsluice_ready 0\n") {
		t.Error("metrics say that it is ready")
	}
	c.signal(syscall.SIGTERM)
	c.exit()
}
