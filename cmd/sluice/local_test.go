//go:build integration

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/localtest"
)

func TestBadInput(t *testing.T) {
	dynamo, queues := os.Getenv("SLUICE_TEST_DYNAMODB"), os.Getenv("SLUICE_TEST_SQS")
	if dynamo == "" || queues == "" {
		t.Fatal("SLUICE_TEST_DYNAMODB or SLUICE_TEST_SQS is not set: run make test")
	}
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
	} {
		t.Setenv(name, value)
	}
	queue := localtest.Name("no-such-queue")
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	text := "source: {tables: [manhunt], start: LATEST}\nsinks: {calls: {sqs: {queue: " + queue + "}}}\n" +
		"routes: [{name: call, on: \"search#INSERT\", send: {to: calls}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string {
		return map[string]string{"SLUICE_CONFIG": file, "SLUICE_ENDPOINT_DYNAMODB": dynamo, "SLUICE_ENDPOINT_SQS": queues}[name]
	}
	var stdout, stderr bytes.Buffer
	args := []string{"run", "--listen", "off", "--state", filepath.Join(t.TempDir(), "state.db")}
	if code := execute(t.Context(), args, env, &stdout, &stderr); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	for _, want := range []string{"sluice: ", queue, queues, "there is no such queue", "create it, or correct its name"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("stderr does not say %q: %s", want, stderr.String())
		}
	}
}
