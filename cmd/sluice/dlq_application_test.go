package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/letters"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/state/boltstate"
)

// parkedAs makes a state file with a dead letter of each of the applications.
func parkedAs(t *testing.T, apps ...string) (path, id string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "sluice.db")
	store, err := boltstate.Open(path, boltstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, app := range apps {
		rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, Sequence: recordtest.Sequence(1), Shard: "shard"})
		box := deadletter.NewBox(store, app)
		if err := box.Park(t.Context(), &rec, sluice.Failure{Route: "r", Attempts: 8, First: errors.New("first"), Last: errors.New("last")}); err != nil {
			t.Fatal(err)
		}
		id = box.ID(&rec, "r")
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return path, id
}

// If an application has no dead letters, the command names the applications that have
// some. Letters of a program have the program's name, which is in no flag and no file.
func TestDeadLettersOfAnotherApplication(t *testing.T) {
	t.Chdir(t.TempDir())
	one, id := parkedAs(t, "orders")
	several, _ := parkedAs(t, "orders", "shop")
	const list, show, purge = "dlq list", "dlq show ", "dlq purge --all --yes"
	for _, tt := range []struct {
		name, command, path string
		code                int
		stdout, stderr      string
	}{
		{"list", list, one, 0, `no dead letters of the application "sluice" in the state file ` + one + "\n",
			`the application "sluice" has no dead letters in the state file ` + one + ": the application orders has some: say --application orders\n"},
		{"list of a named one", list + " --application nope", one, 0, `no dead letters of the application "nope" in `,
			`the application "nope" has no dead letters in `},
		{"for machines", list + " --json", one, 0, "{\n  \"deadLetters\": []\n}\n", "say --application orders\n"},
		{"counted", list + " --count", one, 0, "0 in all in ", "say --application orders\n"},
		{"show", show + id, one, 1, "", "say --application orders\nsluice: no such dead letter: " + id},
		{"purge", purge, one, 0, "0 deleted", "say --application orders\n"},
		{"several", list, several, 0, `no dead letters of the application "sluice" in `,
			": others have some: say by --application which: orders, shop\n"},
		{"the right one", list + " --application orders", several, 0, letters.ShortID(id), ""},
		{"the right one, by a filter", list + " --application orders --route none", several, 0, `no matching dead letters of the application "orders" in `, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			args := append(strings.Fields(tt.command), "--state", tt.path)
			code := execute(t.Context(), args, func(string) string { return "" }, &stdout, &stderr)
			if code != tt.code || !strings.Contains(stdout.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) || tt.stderr == "" && stderr.Len() > 0 {
				t.Errorf("exit %d, printed:\n%s\ntold:\n%s", code, &stdout, &stderr)
			}
		})
	}
}
