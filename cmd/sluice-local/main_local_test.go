//go:build integration

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/internal/localtest"
)

// ran runs the program with sluice, on the servers of the tests, and reports what it left.
func ran(t *testing.T, build func(sluice string)) (out string, err error) {
	t.Helper()
	tables, queues := dynamodb.NewFromConfig(localtest.DynamoDB(t)), sqs.NewFromConfig(localtest.SQS(t))
	bin, tmp := t.TempDir(), t.TempDir()
	build(filepath.Join(bin, "sluice"))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("TMPDIR", tmp)
	t.Setenv("SLUICE_CONFIG", "of-another-daemon.yaml")
	var text strings.Builder
	cmd := command(&text, &text)
	cmd.SetArgs(nil)
	err = cmd.ExecuteContext(t.Context())
	out = text.String()
	if files, _ := filepath.Glob(filepath.Join(tmp, "*")); len(files) > 0 {
		t.Errorf("it left %q", files)
	}
	_, rest, _ := strings.Cut(out, "tables: [orders-")
	id, _, _ := strings.Cut(rest, "]")
	table, queue := "orders-"+id, "jobs-"+id
	if _, err := tables.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}); err == nil || !strings.Contains(err.Error(), "ResourceNotFound") {
		t.Errorf("table %s is left: %v", table, err)
	}
	if _, err := queues.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &queue}); err == nil || !strings.Contains(err.Error(), "QueueDoesNotExist") {
		t.Errorf("queue %s is left: %v", queue, err)
	}
	return out, err
}

func TestFirstMessage(t *testing.T) {
	out, err := ran(t, func(sluice string) {
		if out, err := exec.Command("go", "build", "-o", sluice, "../sluice").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{`"keys":{"pk":"o-1"}`, `"keys":{"pk":"o-2"}`, "on: [order#INSERT]"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %s:\n%s", want, out)
		}
	}
}

// A daemon that does not start says why.
func TestDaemonThatEnds(t *testing.T) {
	out, err := ran(t, func(sluice string) {
		if err := os.WriteFile(sluice, []byte("#!/bin/sh\necho no such flag >&2\nexit 2\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	})
	if err == nil || !strings.Contains(err.Error(), "exit status 2\nno such flag") {
		t.Errorf("it says %v\n%s", err, out)
	}
}
