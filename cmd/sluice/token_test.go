package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/state/boltstate"
)

// A redirect gets no token: the command follows no redirect of a daemon.
func TestTokenFollowsNoRedirect(t *testing.T) {
	const token = "a-token-of-20-letters"
	sent := ""
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"gaps":[]}`)
	}))
	defer other.Close()
	for _, status := range []int{301, 302, 307, 308} {
		daemon := httptest.NewServer(http.RedirectHandler(other.URL+"/gaps", status))
		defer daemon.Close()
		var out, problems strings.Builder
		c := &cli{stdin: strings.NewReader(""), stdout: &out, stderr: &problems, lookup: func(name string) (string, bool) {
			return token, name == "SLUICE_TOKEN"
		}}
		t.Chdir(t.TempDir())
		code := c.execute(t.Context(), []string{"gaps", "list", "--daemon", daemon.URL})
		if code != 1 || sent != "" || !strings.Contains(problems.String(), "sends on to "+other.URL) || strings.Contains(problems.String(), token) {
			t.Errorf("%d: exit %d, another program got %q: %s%s", status, code, sent, out.String(), problems.String())
		}
	}
}

// Another user's program gets no token: not at an address that a daemon has left when
// it crashed, not where the environment says that daemons listen, and not where
// somebody says so by mistake while the daemon listens elsewhere.
func TestTokenGoesToItsDaemonAlone(t *testing.T) {
	sent := ""
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent += r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"gaps":[]}`)
	}))
	defer other.Close()
	asked := 0
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			asked++
		}
		_, _ = io.WriteString(w, `{"gaps":[]}`)
	}))
	defer daemon.Close()
	t.Chdir(t.TempDir())
	store, err := boltstate.Open("sluice.db", boltstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := access.Make(access.FileOf("sluice.db")); err != nil {
		t.Fatal(err)
	}
	listens := func(s *httptest.Server) {
		t.Helper()
		if err := access.WriteAddress(access.AddressFileOf("sluice.db"), s.Listener.Addr()); err != nil {
			t.Fatal(err)
		}
	}
	gaps := func(env map[string]string, args ...string) (code int, problems string) {
		var out, problem strings.Builder
		c := &cli{stdin: strings.NewReader(""), stdout: &out, stderr: &problem, lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
		code = c.execute(t.Context(), append([]string{"gaps", "list"}, args...))
		return code, problem.String()
	}

	listens(daemon)
	if code, problem := gaps(map[string]string{"SLUICE_LISTEN": other.Listener.Addr().String()}); code != 0 || asked != 1 {
		t.Errorf("the daemon itself: exit %d, asked %d times: %s", code, asked, problem)
	}
	if code, problem := gaps(nil, "--daemon", daemon.URL); code != 0 || asked != 2 {
		t.Errorf("the daemon by its address: exit %d, asked %d times: %s", code, asked, problem)
	}
	_, _ = gaps(nil, "--daemon", other.URL)
	if sent != "" {
		t.Error("another program is sent the token while the daemon listens elsewhere")
	}
	if err := store.Close(); err != nil { // and its address is still there, as after a crash
		t.Fatal(err)
	}
	listens(other)
	if code, problem := gaps(nil); code != 1 || !strings.Contains(problem, "no daemon holds the state file") {
		t.Errorf("after a crash: exit %d: %s", code, problem)
	}
	_, _ = gaps(nil, "--daemon", other.URL)
	if sent != "" {
		t.Error("who listens where a daemon did before it crashed is sent the token")
	}
	listens(other)
	held, err := openStateFile("sluice.db", time.Second) // by a command that is no daemon
	if err != nil {
		t.Fatal(err)
	}
	_, _ = gaps(nil)
	_, _ = gaps(nil, "--daemon", other.URL)
	if err := held.Close(); err != nil || sent != "" {
		t.Errorf("while a command holds the state file, who listens where the daemon did is sent %q, %v", sent, err)
	}
	_, _ = gaps(map[string]string{"SLUICE_TOKEN": "of-somebody-who-named-it"}, "--daemon", other.URL)
	if sent != "Bearer of-somebody-who-named-it" {
		t.Errorf("a token and an address that somebody names: %q", sent)
	}
}

func TestDaemonURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:9464":              "http://127.0.0.1:9464",
		"http://localhost:9464/":             "http://127.0.0.1:9464/", // not [::1], where another program may listen
		"http://LocalHost":                   "http://127.0.0.1",
		"https://sluice.example.com/a":       "https://sluice.example.com/a",
		"http://[::1]:9464":                  "http://[::1]:9464",
		"http://me:s3cret@127.0.0.1:9464":    "",
		"http://127.0.0.1:9464@example.com":  "",
		"http://me:s3cret@127.0.0.1:9464%zz": "",
		"http://127.0.0.1:9464?token=s3cret": "",
		"http://127.0.0.1:9464#s3cret":       "",
		"file:///etc/passwd":                 "",
		"http://":                            "",
		"https://localhost:9464":             "https://localhost:9464", // its certificate tells
	} {
		u, err := daemonURL(text)
		if (err == nil) != (want != "") || err == nil && u.String() != want || err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, %v; want %s", text, u, err, want)
		}
	}
}
