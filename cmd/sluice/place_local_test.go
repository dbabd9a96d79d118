//go:build integration

package main

import (
	"os"
	"strings"
	"testing"
)

// validate and run report a missing table in the same words: the table, the endpoint
// and its setting, and what to do.
func TestMissingTable(t *testing.T) {
	o := newOncall(t)
	o.table = "no-such-table"
	o.config("  - {name: log, on: \"*#*\", log: {}}\ndaemon: {listen: \"off\", state: " + t.TempDir() + "/sluice.db}\naws: {region: eu-west-1}\n")
	want := `table "no-such-table": there is no such table at ` + os.Getenv("SLUICE_TEST_DYNAMODB") +
		" (set by SLUICE_ENDPOINT_DYNAMODB), Region eu-west-1 (set by aws.region of the configuration): correct its name, or the endpoint, the Region or the account, or create it\n"
	for _, args := range [][]string{{"validate", "--connect"}, {"run"}} {
		o.run(1, args...)
		if strings.Count(o.stderr.String(), want) != 1 {
			t.Errorf("%q: %s\nwant %s", args, &o.stderr, want)
		}
	}
}
