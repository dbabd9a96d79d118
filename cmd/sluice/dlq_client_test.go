package main

import (
	"errors"
	"fmt"
	"github.com/sluicehq/sluice/internal/localtest"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/internal/letters"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// asked runs a command against a daemon, and returns its exit code and output.
func asked(t *testing.T, daemon http.Handler, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Chdir(t.TempDir())
	svc := httptest.NewServer(daemon)
	defer svc.Close()
	var out, problems strings.Builder
	c := &cli{stdin: strings.NewReader(""), stdout: &out, stderr: &problems, lookup: func(string) (string, bool) { return "", false }}
	code = c.execute(t.Context(), append(args, "--daemon", svc.URL))
	return code, out.String(), problems.String()
}

// A list is of as many as were asked for, however many pages that takes.
func TestListOfManyPages(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	box := letters.NewBox(state.NewMemory(), "app")
	for i := range 1100 {
		rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, Sequence: recordtest.Sequence(i + 1), Shard: "shard"})
		if err := box.Park(t.Context(), &rec, sluice.Failure{Route: "r", Attempts: 8, Last: fmt.Errorf("cause %d", i+1)}); err != nil {
			t.Fatal(err)
		}
	}
	daemon := daemon.DeadLetters(t.Context(), box, "", router.New(), nil, discard)
	for limit, more := range map[int]bool{1: true, 999: true, 1001: true, 1099: true, 1100: false, 5000: false} {
		code, out, problems := asked(t, daemon, "dlq", "list", "--limit", fmt.Sprint(limit))
		want := min(limit, 1100)
		if code != 0 || strings.Count(out, "cause") != want || !strings.Contains(out, fmt.Sprintf("cause %d\n", want)) || strings.Contains(out, "there are more: --after 0") != more {
			t.Errorf("limit %d: exit %d, %d of them: %s", limit, code, strings.Count(out, "cause"), problems)
		}
	}
	page, _, err := box.List(t.Context(), "", 1100)
	if err != nil {
		t.Fatal(err)
	}
	if code, out, _ := asked(t, daemon, "dlq", "list", "--limit", "1", "--after", page[1097].ID); code != 0 || !strings.Contains(out, "cause 1099\n") || !strings.Contains(out, "--after "+page[1098].ID) {
		t.Errorf("behind another: exit %d, %s", code, out)
	}
}

// A redrive whose answer breaks off, or ends with a fault, is none that has succeeded.
func TestRedriveThatIsCutOff(t *testing.T) {
	const done = `{"id":"one","result":"done"}` + "\n"
	for answer, want := range map[string]string{
		done: "the redrive was cut off, and what it had not done is still parked",
		done + `{"report":{"done":1},"fault":"disk full"}`: "disk full",
	} {
		daemon := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
		code, out, problems := asked(t, daemon, "dlq", "redrive", "--all")
		if code != 1 || !strings.Contains(out, "one: done") || !strings.Contains(problems, want) {
			t.Errorf("%q: exit %d, %s%s", answer, code, out, problems)
		}
	}
}

// The command sends its flags to the daemon unchanged.
func TestAskedOfADaemon(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"redrive --all --dry-run", "POST /deadletters/redrive?dryRun=1"},
		{"redrive --route r --force", "POST /deadletters/redrive?force=1&route=r"},
		{"redrive one --earlier", "POST /deadletters/one/redrive?earlier=1"},
		{"redrive one --force --dry-run", "POST /deadletters/one/redrive?dryRun=1&force=1"},
		{"purge one --yes", "DELETE /deadletters/one?"},
		{"show one --payload", "GET /deadletters/one?payload=1"},
		{"list --count", "GET /deadletters/counts?"},
	} {
		var got []string
		daemon := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = append(got, r.Method+" "+r.URL.Path+"?"+r.URL.RawQuery)
			http.Error(w, "404 page not found", http.StatusNotFound)
		})
		code, _, problems := asked(t, daemon, append([]string{"dlq"}, strings.Fields(tt.args)...)...)
		if len(got) == 2 && got[0] == "GET /deadletters/one?" { // ids are looked up before anything is changed
			got = got[1:]
		}
		if code != 1 || len(got) != 1 || got[0] != tt.want || !strings.Contains(problems, "an older daemon, or another program?") {
			t.Errorf("%s: exit %d, asked %q, %s", tt.args, code, got, problems)
		}
	}
}

// purge --until deletes the letters parked before that time, and no others.
func TestPurgeUntil(t *testing.T) {
	box := letters.NewBox(state.NewMemory(), "app")
	rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, Sequence: recordtest.Sequence(1), Shard: "shard"})
	if err := box.Park(t.Context(), &rec, sluice.Failure{Route: "r", Last: errors.New("last")}); err != nil {
		t.Fatal(err)
	}
	daemon := daemon.DeadLetters(t.Context(), box, "", router.New(), nil, discard)
	for until, want := range map[string]string{"1h": "0 deleted", "2000-01-01T00:00:00Z": "0 deleted"} {
		if code, out, problems := asked(t, daemon, "dlq", "purge", "--until", until, "--yes"); code != 0 || !strings.Contains(out, want) {
			t.Errorf("until %s: exit %d, %s%s", until, code, out, problems)
		}
	}
	if code, out, problems := asked(t, daemon, "dlq", "purge", "--until", "2100-01-01T00:00:00Z", "--yes"); code != 0 || !strings.Contains(out, "1 deleted") {
		t.Errorf("exit %d, %s%s", code, out, problems)
	}
}
