package main

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/boltstate"
)

// proposals returns the shell completions at the end of a command.
func proposals(t *testing.T, env map[string]string, args ...string) string {
	t.Helper()
	var stdout, stderr strings.Builder
	c := &cli{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	if code := c.execute(t.Context(), append([]string{"__complete"}, args...)); code != 0 {
		t.Errorf("exit %d: %s", code, &stderr)
	}
	return stdout.String()
}

// A daemon that does not answer keeps nobody's shell waiting: it is given up, or
// this would not end.
func TestProposalsOfASilentDaemon(t *testing.T) {
	defer func(usual time.Duration) { completionEnd = usual }(completionEnd)
	completionEnd = time.Second
	givenUp := make(chan struct{})
	daemon := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(givenUp)
	}))
	defer daemon.Close()
	if got := proposals(t, nil, "dlq", "show", "--daemon", daemon.URL, ""); got != ":36\n" {
		t.Errorf("proposed: %q", got)
	}
	<-givenUp
}

// A state file that somebody holds, who does not listen where it is asked, is left
// alone, and is not waited for.
func TestProposalsOfAHeldStateFile(t *testing.T) {
	t.Chdir(t.TempDir())
	path := filepath.Join(t.TempDir(), "sluice.db")
	store, err := boltstate.Open(path, boltstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	nobody := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	if err := access.WriteAddress(access.AddressFileOf(path), nobody); err != nil {
		t.Fatal(err)
	}
	if got := proposals(t, nil, "dlq", "redrive", "--state", path, ""); got != ":36\n" {
		t.Errorf("proposed: %q", got)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// A table of two Regions is proposed once.
func TestProposalsOfStoredTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	store, err := boltstate.Open(path, boltstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"eu-west-1:0:table/orders", "eu-west-1:0:table/users", "us-east-1:0:table/orders"} {
		_, failed := store.Start(t.Context(), state.Stream{Application: "sluice", ARN: "arn:aws:dynamodb:" + table + "/stream/2026-01-01T00:00:00.000"}, state.Start{Position: "TRIM_HORIZON"})
		err = errors.Join(err, failed)
	}
	if err = errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	if got := proposals(t, nil, "state", "show", "--state", path, ""); got != "orders\nusers\n:4\n" {
		t.Errorf("proposed: %q", got)
	}
}
