package daemon

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/daemons"
	"github.com/sluicehq/sluice/streamtest"
)

// While a daemon runs, the commands of its user find it.
func TestDaemonIsNoted(t *testing.T) {
	noAWS(t)
	svc := streamtest.NewService(t)
	svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	home, state := t.TempDir(), filepath.Join(t.TempDir(), "state.db")
	env := func(name string) string { return map[string]string{"XDG_CACHE_HOME": home}[name] }
	c := startChild(t, "echo", []string{"XDG_CACHE_HOME=" + home}, "--table", "orders", "--start", "TRIM_HORIZON", "--listen", "127.0.0.1:0",
		"--state", state, "--endpoint-dynamodb", svc.URL())
	c.until("starting", 1)
	all := daemons.Noted(env)
	if len(all) != 1 || all[0] != (daemons.Daemon{State: state, Application: "echo"}) {
		t.Errorf("%+v\n%s", all, c.output())
	}
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 || daemons.Noted(env) != nil {
		t.Errorf("exit %d, noted %+v:\n%s", code, daemons.Noted(env), c.output())
	}
}
