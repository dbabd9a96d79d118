package run

import (
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/daemons"
	"github.com/sluicehq/sluice/streamtest"
)

// The commands are led to an address that they can ask.
func TestNote(t *testing.T) {
	home := t.TempDir()
	env := func(name string) string { return map[string]string{"XDG_CACHE_HOME": home}[name] }
	o := Options{State: "/tmp/s.db", Application: "shop"}
	for address, want := range map[string]string{
		"127.0.0.1:9464": "http://127.0.0.1:9464", "0.0.0.0:1": "http://127.0.0.1:1", "[::]:1": "http://127.0.0.1:1", "[::1]:1": "http://[::1]:1",
	} {
		forget := o.note(env, address, slog.New(slog.DiscardHandler))
		if all := daemons.Noted(env); len(all) != 1 || all[0] != (daemons.Daemon{URL: want, State: "/tmp/s.db", Application: "shop"}) {
			t.Errorf("%s: %+v", address, all)
		}
		forget()
		if all := daemons.Noted(env); all != nil {
			t.Errorf("%s: after its end %+v", address, all)
		}
	}
}

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
	if len(all) != 1 || all[0].State != state || !strings.Contains(c.output(), "address="+strings.TrimPrefix(all[0].URL, "http://")) {
		t.Errorf("%+v\n%s", all, c.output())
	}
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 || daemons.Noted(env) != nil {
		t.Errorf("exit %d, noted %+v:\n%s", code, daemons.Noted(env), c.output())
	}
}
