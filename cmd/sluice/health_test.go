package main

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/internal/localtest"
)

// probed is a daemon's probes: dead and unready say why not, and may change.
type probed struct {
	dead, unready string
	http.ServeMux
}

func newProbed() *probed {
	p := new(probed)
	p.Handle("GET /livez", daemon.Livez("orders", func() string { return p.dead }))
	p.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if p.unready != "" {
			http.Error(w, p.unready, http.StatusServiceUnavailable)
		}
	})
	return p
}

// checked runs sluice health in a process without a home.
func checked(t *testing.T, env map[string]string, args ...string) (code int, out, problems string) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = execute(t.Context(), append([]string{"health"}, args...), func(name string) string { return env[name] }, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestHealth(t *testing.T) {
	t.Chdir(t.TempDir())
	p := newProbed()
	svc := httptest.NewServer(p)
	defer svc.Close()
	for _, tt := range []struct {
		dead, unready, args string
		code                int
		want                string
	}{
		{"", "the sink is down", "", 0, `the daemon of the application "orders" at ` + svc.URL + " is live\n"},
		{"", "", "--ready", 0, " is live and ready\n"},
		{"", "the sink\x1b is down", "--ready", 1, `is not ready (503 Service Unavailable): the sink\u001b is down`},
		{"deadlocked", "", "", 1, "is not live (503 Service Unavailable): deadlocked"},
		{"deadlocked", "", "--ready", 1, "is not live"},
		{"", "", "now", 2, "unexpected argument"},
	} {
		p.dead, p.unready = tt.dead, tt.unready
		code, out, problems := checked(t, map[string]string{"SLUICE_DAEMON": svc.URL + "/"}, strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(out+problems, tt.want) || (code == 0) != (out != "") {
			t.Errorf("%+v: exit %d: %s%s", tt, code, out, problems)
		}
	}
	p.dead, p.unready = "", "the sink is down"
	code, out, problems := checked(t, nil, "--daemon", strings.TrimPrefix(svc.URL, "http://"), "--ready", "--json")
	var h health
	if err := json.Unmarshal([]byte(out), &h); err != nil || code != 1 || problems != "" || h.Address != svc.URL || h.Application != "orders" || !h.Live || h.Ready == nil || *h.Ready || !strings.Contains(h.Error, "the sink is down") {
		t.Errorf("exit %d, %v: %s%s", code, err, out, problems)
	}
}

// An answer of something else is none of a daemon.
func TestHealthOfNoDaemon(t *testing.T) {
	t.Chdir(t.TempDir())
	defer func(before time.Duration) { probeTimeout = before }(probeTimeout)
	silent := make(chan struct{})
	svc := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away/livez":
			http.Redirect(w, r, "/livez", http.StatusFound)
		case "/silent/livez":
			<-silent
		case "/cut/livez":
			w.Header().Set("Content-Length", "9")
		}
	}))
	defer svc.Close()
	defer close(silent)
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"--daemon " + svc.URL, 1, "is no Sluice daemon (200 OK): name the daemon's address by --daemon"},
		{"--daemon " + svc.URL + "/away", 1, "is no Sluice daemon (302 Found)"},
		{"--daemon " + svc.URL + "/silent", 1, "does not answer"},
		{"--daemon " + svc.URL + "/cut", 1, "the daemon's answer to /livez has no end: unexpected EOF"},
		{"--daemon http://127.0.0.1:1", 1, "connection refused: start it, or name its address by --daemon"},
		{"--daemon ftp://here", 2, "this is no address of a daemon"},
		{"--daemon=", 2, "--daemon: it is empty"},
		{"", 1, "no daemon with the state file sluice.db listens: start it, or name its address by --daemon"},
	} {
		probeTimeout = localtest.Patience
		if strings.HasSuffix(tt.args, "silent") {
			probeTimeout = time.Millisecond
		}
		if code, out, problems := checked(t, nil, strings.Fields(tt.args)...); code != tt.code || out != "" || !strings.Contains(problems, tt.want) {
			t.Errorf("%s: exit %d: %s%s", tt.args, code, out, problems)
		}
	}
	if code, out, problems := checked(t, nil, "--json"); code != 1 || problems != "" || !strings.Contains(out, `"live": false`) || !strings.Contains(out, "no daemon with the state file") {
		t.Errorf("exit %d: %s%s", code, out, problems)
	}
}

// A container's check finds the daemon of the container: by the address beside the
// state file, or with a table by the address in its settings. No
// mistake in a file that the daemon has not read makes it fail.
func TestHealthFindsTheDaemon(t *testing.T) {
	t.Chdir(t.TempDir())
	svc := httptest.NewServer(newProbed())
	defer svc.Close()
	address := svc.Listener.Addr()
	_, port, err := net.SplitHostPort(address.String())
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "state.db")
	if err := access.WriteAddress(access.AddressFileOf(state), address); err != nil {
		t.Fatal(err)
	}
	wrong, file, table := "title: x", "daemon: {state: '"+state+"'}", "daemon: {state: 'dynamodb:sluice-state', listen: '[::]:"+port+"'}"
	rest := "\nsource: {tables: [orders], start: LATEST}\nroutes: [{name: log, on: '*#*', log: {}}]\n"
	for _, tt := range []struct {
		config, state, listen string
		code                  int
		want                  string
	}{
		{wrong, state, "", 0, "is live"},
		{"", state, "", 0, "is live"},
		{file + rest, "", "", 0, "is live"},
		{wrong, "", "", 1, `unknown field "title"`},
		{wrong, "", "", 1, "no daemon with the state file sluice.db listens"},
		{table + rest, "", "", 0, "is live"},
		{wrong, "dynamodb:sluice-state", address.String(), 0, "is live"},
		{wrong, "dynamodb:sluice-state", "0.0.0.0:" + port, 0, "is live"},
		{wrong, "dynamodb:sluice-state", ":" + port, 0, "is live"},
		{"", "dynamodb:sluice-state", "off", 1, "does not listen (listen: off)"},
	} {
		if err := os.WriteFile("sluice.yaml", []byte(tt.config), 0o600); err != nil {
			t.Fatal(err)
		}
		if tt.config == "" {
			os.Remove("sluice.yaml")
		}
		code, out, problems := checked(t, map[string]string{"SLUICE_STATE": tt.state, "SLUICE_LISTEN": tt.listen})
		if code != tt.code || !strings.Contains(out+problems, tt.want) {
			t.Errorf("%+v: exit %d: %s%s", tt, code, out, problems)
		}
	}
	if err := access.WriteAddress(access.AddressFileOf("sluice.db"), address); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("sluice.yaml", []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, problems := checked(t, nil); code != 0 {
		t.Errorf("beside an invalid file: exit %d: %s", code, problems)
	}
	if err := errors.Join(os.Remove(access.AddressFileOf("sluice.db")), os.Mkdir(access.AddressFileOf("sluice.db"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if code, _, problems := checked(t, nil); code != 1 || !strings.Contains(problems, "where the daemon listens: ") || !strings.Contains(problems, "(sudo -u), or name its address by --daemon") {
		t.Errorf("an address that cannot be read: exit %d: %s", code, problems)
	}
	if _, err := os.Stat(state); err == nil {
		t.Error("the check has made a state file")
	}
}
