package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Who answers at a daemon's address does not have the token sent on to another
// port, and has nothing but the request itself changed.
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
