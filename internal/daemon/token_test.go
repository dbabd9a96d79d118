package daemon

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/streamtest"
)

// Metrics and readiness need no token. Records and causes do.
func TestDaemonIsForThoseWhoHaveItsToken(t *testing.T) {
	noAWS(t)
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	for _, id := range []string{"1", "2", "3", "4", "5"} { // an outage
		table.Put(map[string]any{"id": id})
	}
	state := filepath.Join(t.TempDir(), "state.db")
	crashed, err := net.ResolveTCPAddr("tcp", "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := access.WriteAddress(access.AddressFileOf(state), crashed); err != nil {
		t.Fatal(err)
	}
	c := startChild(t, "broken", []string{access.TokenEnv + "="}, "--table", "orders", "--start", "TRIM_HORIZON", "--listen", "127.0.0.1:0",
		"--state", state, "--endpoint-dynamodb", svc.URL(), "--pprof", "--grace", "10s") // what fails would hold the end up
	c.until("record failed", 1)
	token, err := access.Read(access.FileOf(state))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(c.output(), token) || !strings.Contains(c.output(), access.FileOf(state)) {
		t.Errorf("the log has the token, or not its file:\n%s", c.output())
	}
	_, rest, _ := strings.Cut(c.output(), "msg=listening address=")
	address, _, _ := strings.Cut(rest, "\n")
	if at, err := access.ReadAddress(access.AddressFileOf(state), ""); at != address || err != nil {
		t.Errorf("commands find the daemon at %q, %v; it listens at %s", at, err, address)
	}
	ask := func(method, path, token string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "daemon.example.com"
		if token != "" {
			req.Host = address
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	for _, path := range []string{"/livez", "/startedz", "/metrics"} {
		if code, body := ask("GET", path, ""); code != 200 {
			t.Errorf("%s by any name: %d %s", path, code, body)
		}
	}
	for _, what := range []string{
		"GET /", "GET /api/held", "GET /deadletters", "GET /deadletters/x?payload=1", "POST /deadletters/redrive", "DELETE /deadletters?all=1",
		"GET /gaps", "POST /gaps/acknowledge", "POST /park?route=x", "POST /session", "GET /debug/pprof/goroutine?debug=1",
	} {
		method, path, _ := strings.Cut(what, " ")
		if code, body := ask(method, path, ""); code != 403 && code != 401 {
			t.Errorf("%s: %d %s", what, code, body)
		}
		if code, body := ask(method, path, "not-that-of-the-daemon"); code != 401 {
			t.Errorf("%s with another token: %d %s", what, code, body)
		}
		if code, body := ask(method, path, token); code == 401 || code == 403 {
			t.Errorf("%s with the token: %d %s", what, code, body)
		}
	}
	const cause = "the sink is down"
	localtest.Await(t, "the daemon is not ready", func() string {
		if code, body := ask("GET", "/readyz", token); code != 503 || !strings.Contains(body, cause) {
			return body
		}
		return ""
	})
	if code, body := ask("GET", "/readyz", ""); code != 503 || strings.Contains(body, cause) || !strings.Contains(body, "sluice status says why") || !strings.Contains(body, `route "`) {
		t.Errorf("/readyz without the token: %d %s", code, body)
	}
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Errorf("exit %d:\n%s", code, c.output())
	}
	http.DefaultClient.CloseIdleConnections()
	if _, err := os.Stat(access.AddressFileOf(state)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the address stays when the daemon has ended: %v", err)
	}
	if again, err := access.Read(access.FileOf(state)); again != token || err != nil {
		t.Errorf("the token is another after the end: %v", err)
	}
}

func TestToken(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte("in-a-file-that-is-named"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env, file string
		want, err string
	}{
		"the variable goes first": {"of-the-variable-16", file, "of-the-variable-16", ""},
		"a short one":             {"short", "", "", "SLUICE_TOKEN: a token has 16 characters"},
		"a file that is named":    {"", file, "in-a-file-that-is-named", ""},
		"one that is not there":   {"", file + "2", "", "--token-file (SLUICE_TOKEN_FILE): file "},
	} {
		got, _, err := Options{State: filepath.Join(dir, "s.db"), TokenFile: c.file}.token(func(string) string { return c.env })
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
