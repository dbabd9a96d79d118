package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/localstack"
)

func TestRun(t *testing.T) {
	t.Setenv(localstack.EnvDynamoDB, "http://127.0.0.1:8000")
	t.Setenv(localstack.EnvSQS, "http://127.0.0.1:9324")
	t.Setenv(localstack.EnvOpenSearch, "http://127.0.0.1:9200")
	t.Setenv(localstack.EnvOpenSearch3, "http://127.0.0.1:9201")
	t.Setenv("AWS_REGION", "eu-west-1")

	for _, tt := range []struct {
		name string
		args []string
		code int
		err  string
	}{
		{"passes on success", []string{"true"}, 0, ""},
		{"passes on the code", []string{"sh", "-c", "exit 3"}, 3, ""},
		{"sets the variables", []string{"sh", "-c",
			`test "$SLUICE_TEST_DYNAMODB $SLUICE_TEST_SQS $AWS_REGION" = "http://127.0.0.1:8000 http://127.0.0.1:9324 us-east-1"`}, 0, ""},
		{"of OpenSearch, too", []string{"--opensearch", "sh", "-c",
			`test "$SLUICE_TEST_OPENSEARCH $SLUICE_TEST_OPENSEARCH3" = "http://127.0.0.1:9200 http://127.0.0.1:9201"`}, 0, ""},
		{"unknown command", []string{"no-such-command"}, 1, "no-such-command"},
		{"a flag", []string{"--help"}, 2, "usage"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, err := run(tt.args)
			if code != tt.code {
				t.Errorf("code %d, want %d", code, tt.code)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

// A shell accepts the printed lines.
func TestExports(t *testing.T) {
	script := exports(&localstack.Stack{DynamoDB: "http://127.0.0.1:8000", SQS: "http://127.0.0.1:9324", OpenSearch: "http://127.0.0.1:9200"}) +
		`echo "$SLUICE_ENDPOINT_DYNAMODB $SLUICE_ENDPOINT_SQS $SLUICE_ENDPOINT_OPENSEARCH $SLUICE_OPENSEARCH ${SLUICE_ENDPOINT_OPENSEARCH3-none} $AWS_REGION $AWS_DEFAULT_REGION $AWS_ACCESS_KEY_ID"`
	out, err := exec.Command("sh", "-euc", script).CombinedOutput()
	const want = "http://127.0.0.1:8000 http://127.0.0.1:9324 http://127.0.0.1:9200 http://127.0.0.1:9200 none us-east-1 us-east-1 local\n"
	if err != nil || string(out) != want {
		t.Errorf("%v, %s, want %s", err, out, want)
	}
}

// A signal to withstack alone reaches the command, which may end in its own way.
// Who uses Docker reads the same variables from a file, with the ports of the
// compose file.
func TestExportsAreThoseForDocker(t *testing.T) {
	local := filepath.Join("..", "..", "..", "deploy", "local")
	text, err := os.ReadFile(filepath.Join(local, "env.sh"))
	if err != nil {
		t.Fatal(err)
	}
	compose, err := os.ReadFile(filepath.Join(local, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var at [4]string
	for i, service := range []string{"dynamodb", "sqs", "opensearch2", "opensearch3"} {
		port := regexp.MustCompile(`(?s)\n  ` + service + `:\n.*?ports: \["(127\.0\.0\.1:\d+):`).FindSubmatch(compose)
		if port == nil {
			t.Fatalf("no port of %s", service)
		}
		at[i] = "http://" + string(port[1])
	}
	var lines strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			lines.WriteString(line)
		}
	}
	if want := exports(&localstack.Stack{DynamoDB: at[0], SQS: at[1], OpenSearch: at[2], OpenSearch3: at[3]}); lines.String() != want {
		t.Errorf("deploy/local/env.sh has\n%s\nwant what make servers prints\n%s", &lines, want)
	}
}

func TestRunPassesOnTermination(t *testing.T) {
	t.Setenv(localstack.EnvDynamoDB, "http://127.0.0.1:8000")
	t.Setenv(localstack.EnvSQS, "http://127.0.0.1:9324")
	mark := filepath.Join(t.TempDir(), "ended")
	code, err := run([]string{"sh", "-c", `trap 'echo yes >"$1"; exit 0' TERM; kill -TERM $PPID; while :; do :; done`, "sh", mark})
	if code != 130 || err == nil {
		t.Errorf("code %d, error %v; want 130 and that it was interrupted", code, err)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("the command was not told to end: %v", err)
	}
}

func TestSummaryFailsWhenOneWasSkipped(t *testing.T) {
	for _, tt := range []struct {
		skipped, out string
		fails        bool
	}{
		{"0", "12 tests ran, 0 skipped, 1 failed, 0 errors\n", false},
		{"2", "10 tests ran, 2 skipped, 1 failed, 0 errors\n", true},
	} {
		cmd := exec.Command("bash", "summary")
		cmd.Env = append(os.Environ(), "TESTS_TOTAL=12", "TESTS_FAILED=1", "TESTS_ERRORS=0", "TESTS_SKIPPED="+tt.skipped)
		out, err := cmd.Output()
		if string(out) != tt.out || (err != nil) != tt.fails {
			t.Errorf("%s skipped: %q, %v", tt.skipped, out, err)
		}
	}
}

// Each run is a line. A failed run fails the command. The busy loops beside the last
// runs end with it.
func TestSteady(t *testing.T) {
	script, err := filepath.Abs("steady")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	fake := filepath.Join(dir, "make")
	const text = `#!/bin/sh
echo "$@ $GOFLAGS" >>calls
mkdir -p .out; echo {} >.out/test.json
echo "$(wc -l <calls) tests ran, 0 skipped, 0 failed, 0 errors"
[ "$(wc -l <calls)" -ne 2 ]
`
	if err := os.WriteFile(fake, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", script, "3", "1")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "MAKE="+fake)
	out, err := cmd.CombinedOutput() // returns once the loops have closed it, too
	want := regexp.MustCompile(`^passed: run 1 of 3, 0 min \d\d s, 1 tests ran, 0 skipped, 0 failed, 0 errors
FAILED: run 2 of 3, 0 min \d\d s, 2 tests ran, 0 skipped, 0 failed, 0 errors
passed: run 3 of 3 beside \d+ busy loops, 0 min \d\d s, 3 tests ran, 0 skipped, 0 failed, 0 errors
1 of 3 runs failed
$`)
	if err == nil || !want.Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil || strings.Count(string(calls), "-count=1\n") != 3 {
		t.Errorf("%v, calls\n%s", err, calls)
	}
}
