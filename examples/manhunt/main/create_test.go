package main

import (
	"io"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/run"
)

// Without DynamoDB the error names the endpoint, and says what to do.
func TestCreateWithoutDynamoDB(t *testing.T) {
	env := map[string]string{"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_MAX_ATTEMPTS": "1", "SLUICE_ENDPOINT_DYNAMODB": "http://127.0.0.1:1"}
	for name, value := range env {
		t.Setenv(name, value) // the SDK reads it
	}
	var stderr strings.Builder
	err := program.Execute(t.Context(), "create", kit.Call{Env: func(name string) string { return env[name] }, Out: io.Discard})
	exit := run.Exit(err, "manhunt", &stderr)
	want := "manhunt: creating table manhunt: DynamoDB CreateTable at http://127.0.0.1:1: the endpoint cannot be reached: is it right, and is the service running?: dial tcp 127.0.0.1:1: connect: connection refused\n"
	if exit != 1 || stderr.String() != want {
		t.Errorf("%d, %s", exit, stderr.String())
	}
}
