package main

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cli/browser"
)

// open asks a daemon for a link, and opens a file that leads to it: no argument of a
// program, which other users of the machine can read, has the link.
func TestOpen(t *testing.T) {
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "POST" || r.URL.Path != "/session" || r.Header.Get("Authorization") != "Bearer a-token-of-20-letters" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"path":"/session/CODE"}`)
	}))
	defer daemon.Close()
	t.Chdir(t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir()) // where macOS has its cache
	opened := ""
	run := func(broken error, args ...string) (code int, out, problems string) {
		var stdout, stderr strings.Builder
		opened = ""
		c := &cli{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, lookup: func(name string) (string, bool) {
			return "a-token-of-20-letters", name == "SLUICE_TOKEN"
		}, browse: func(file string) error {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Error(err)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || strings.Contains(file, "CODE") {
				t.Errorf("%s: %v, %v", file, info.Mode(), err)
			}
			opened = string(data)
			return broken
		}}
		code = c.execute(t.Context(), append([]string{"open", "--daemon", daemon.URL}, args...))
		return code, stdout.String(), stderr.String()
	}
	link := daemon.URL + "/session/CODE"
	for range 2 { // the second link replaces the first
		if code, out, problems := run(nil); code != 0 || out != "" || !strings.Contains(opened, `url=`+link+`"`) || strings.Contains(problems, "CODE") {
			t.Errorf("exit %d, opened %q: %s%s", code, opened, out, problems)
		}
	}
	if code, out, problems := run(fs.ErrNotExist); code != 0 || out != link+"\n" || !strings.Contains(problems, "no browser could be opened") {
		t.Errorf("without a browser: exit %d: %s%s", code, out, problems)
	}
	if code, out, _ := run(errors.New("not to be called"), "--print"); code != 0 || out != link+"\n" || opened != "" {
		t.Errorf("--print: exit %d: %s, opened %q", code, out, opened)
	}
	if code, out, _ := run(nil, "--print", "--address", "http://localhost:8080/"); code != 0 || out != "http://127.0.0.1:8080/session/CODE\n" {
		t.Errorf("--address: exit %d: %s", code, out)
	}
	if code, _, problems := run(nil, "--address", "localhost:8080"); code != 2 || !strings.Contains(problems, "--address: this is no address of a daemon") {
		t.Errorf("a wrong --address: exit %d: %s", code, problems)
	}
}

// A launcher that finds no browser says so many times.
func TestBrowseIsSilent(t *testing.T) {
	bin := t.TempDir()
	for _, launcher := range []string{"xdg-open", "open"} {
		script := "#!/bin/sh\necho no firefox\necho no lynx >&2\nexit 3\n"
		if err := os.WriteFile(filepath.Join(bin, launcher), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	var noise strings.Builder
	browser.Stdout, browser.Stderr = &noise, &noise
	if err := browse("open.html"); err == nil || err.Error() != "exit status 3" || noise.String() != "" {
		t.Errorf("%v, printed %q", err, noise.String())
	}
}
