package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A shell proposes files only for flags and arguments that are files.
func TestFilesAreProposedWhereTheyAreMeant(t *testing.T) {
	t.Chdir(t.TempDir())
	files := []string{"--config", "--state", "--token-file", "--file", "--failed", "--letter-key-file", "--bootstrap", "--opensearch-ca", "--indices", "--schema",
		"sluice validate --sample", "sluice state copy --from", "sluice state copy --to"} // audit's --sample is a share
	arguments := []string{"sluice explain", "sluice replay", "sluice lambda invoke"}
	c := &cli{lookup: func(string) (string, bool) { return "", false }, stdout: io.Discard, stderr: io.Discard}
	ask := func(cmd *cobra.Command, what string, want bool, args ...string) {
		t.Helper()
		// 4 is no files; 8 those with an ending, 16 folders.
		got := proposals(t, nil, append(append(strings.Fields(cmd.CommandPath())[1:], args...), "")...)
		if got := strings.HasSuffix(got, ":0\n") || strings.HasSuffix(got, ":8\n") || strings.HasSuffix(got, ":16\n"); got != want {
			t.Errorf("%s %s: proposes files: %t", cmd.CommandPath(), what, got)
		}
	}
	root := c.root()
	ask(root, "--config", true, "--config")
	each(root, func(cmd *cobra.Command) {
		ask(cmd, "", slices.Contains(arguments, cmd.CommandPath()))
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "bool" {
				file := slices.Contains(files, "--"+f.Name) && cmd.CommandPath() != "sluice state create" // which makes tables
				ask(cmd, "--"+f.Name, file || slices.Contains(files, cmd.CommandPath()+" --"+f.Name), "--"+f.Name)
			}
		})
	})
}

// Completion proposes the names in the configuration.
func TestNamesAreProposed(t *testing.T) {
	t.Chdir(t.TempDir())
	path, _ := parkedAs(t, "orders", "shop")
	if err := os.WriteFile("sluice.yaml", []byte(`
source: {tables: [lines], queues: ["https://sqs.eu-west-1.amazonaws.com/1/calls"]}
deadLetter: {queue: failed}
routes:
  - {name: found, on: [order#*, "line#INSERT", "*#REMOVE"], log: {}}
  - name: counted
    on: line#*
    count: {id: lines, markers: markers, numbers: [{table: orders, attribute: lines, key: {id: order}, index: byOrder, partition: order}]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		want string
	}{
		{"dlq list --route", "found counted"},
		{"dlq purge --table", "lines calls"},
		{"dlq list --kind", "record gap"},
		{"dlq show --queue", "failed"},
		{"dlq redrive --state " + path + " --application", "orders shop"},
		{"dlq list --state none.db --application", ""},
		{"state list --state " + path + " --application", "orders shop"},
		{"state reset --to", "TRIM_HORIZON LATEST forgotten"},
		{"replay --route", "found counted"},
		{"recount --table", "orders"},
		{"run --start", "TRIM_HORIZON LATEST"},
		{"run --queue", "https://sqs.eu-west-1.amazonaws.com/1/calls"},
		{"run --log-level", "debug info warn error"},
		{"run --log-format", "text json"},
		{"run --dead-letter", "record item"},
		{"tail --type", "order line"},
		{"audit --opensearch-sign", "es aoss"},
	} {
		got := strings.Fields(proposals(t, nil, append(strings.Fields(tt.args), "")...))
		if got := strings.Join(got[:len(got)-1], " "); got != tt.want {
			t.Errorf("%s: proposed %q, want %q", tt.args, got, tt.want)
		}
	}
	if _, err := os.Stat(filepath.Join(".", "none.db")); err == nil {
		t.Error("a state file was made")
	}
}

func TestCompletionHelp(t *testing.T) {
	var stdout, stderr strings.Builder
	execute(t.Context(), []string{"completion", "--help"}, func(string) string { return "" }, &stdout, &stderr)
	for _, want := range []string{"routes", "tables", "source <(sluice completion bash)"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("does not say %q:\n%s%s", want, &stdout, &stderr)
		}
	}
}
