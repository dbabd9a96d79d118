package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/run"
)

// DynamoDB Local sends its errors without a checksum, which the SDK warns of.
func TestCreateAgainPrintsNoWarnings(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/x-amz-json-1.0")
		rw.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(rw, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceInUseException","message":"Table already exists"}`)
	}))
	defer srv.Close()
	env := map[string]string{"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "SLUICE_ENDPOINT_DYNAMODB": srv.URL}
	for name, value := range env {
		t.Setenv(name, value) // the SDK reads it
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = log
	err = create(t.Context(), kit.Call{Env: func(name string) string { return env[name] }, Out: io.Discard})
	os.Stderr = stderr
	if err == nil {
		t.Error("no error of tables that cannot be described")
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(log.Name()); err != nil || len(got) > 0 {
		t.Errorf("it prints %q, %v", got, err)
	}
}

func TestCommandsRefuse(t *testing.T) {
	env := func(name string) string { return map[string]string{"WAREHOUSE_REPLICAS": "many"}[name] }
	for args, want := range map[string]string{
		"create now":               "takes no arguments",
		"create":                   `WAREHOUSE_REPLICAS="many"`,
		"seed it":                  "takes no arguments",
		"status whatever dev":      "wrong number of arguments (2): want status PKG ENV VERSION, such as status whatever dev 1.0.0",
		"packages all":             "wrong number of arguments (1): want packages [--limit N] [--after NEXT]",
		"packages --limit 0":       "--limit is 0, want 1 or more",
		"foo":                      `unknown command "foo"; commands are builds, create, dependent-of, dependents, events,`,
		"versions":                 "wrong number of arguments (0): want versions NAME [FROM] [TO]",
		"versions a 1 2 3":         "wrong number of arguments (4): want versions NAME [FROM] [TO]",
		"heads email prod --first": "unknown flag: --first: want heads NAME ENV",
	} {
		var usage *kit.UsageError
		words := strings.Fields(args)
		if err := program.Execute(t.Context(), words[0], kit.Call{Args: words[1:], Env: env, Out: io.Discard}); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	if err := program.Execute(t.Context(), "package", kit.Call{Args: []string{""}, Env: env, Out: io.Discard}); err == nil || !strings.Contains(err.Error(), "an argument is empty: want package NAME") {
		t.Error(err)
	}
}

func TestHelp(t *testing.T) {
	for name, c := range program.Commands {
		var out strings.Builder
		if err := program.Execute(t.Context(), name, kit.Call{Args: []string{"--help"}, Out: &out}); err != nil || out.String() != "warehouse "+c.Usage+": "+c.Does+"\n\nExample:\n  warehouse "+c.Example+"\n" {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
		if q, ok := questions[name]; ok {
			if _, err := q.read(name, strings.Fields(c.Example)[1:]); err != nil {
				t.Errorf("the example %s: %v", c.Example, err)
			}
		}
		if !strings.Contains(program.Help(), "  "+c.Usage+"\n") {
			t.Errorf("help has no %s", name)
		}
	}
}

// Without DynamoDB the error names the endpoint, and says what to do.
func TestCreateWithoutDynamoDB(t *testing.T) {
	env := map[string]string{"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_MAX_ATTEMPTS": "1", "SLUICE_ENDPOINT_DYNAMODB": "http://127.0.0.1:1", "SLUICE_ENDPOINT_OPENSEARCH": "http://127.0.0.1:1"}
	for name, value := range env {
		t.Setenv(name, value) // the SDK reads it
	}
	var stderr strings.Builder
	err := program.Execute(t.Context(), "create", kit.Call{Env: func(name string) string { return env[name] }, Out: io.Discard})
	exit := run.Exit(err, "warehouse", &stderr)
	want := "warehouse: creating table wrhs_status_event: DynamoDB CreateTable at http://127.0.0.1:1: the endpoint cannot be reached: is it right, and is the service running?: dial tcp 127.0.0.1:1: connect: connection refused\n"
	if exit != 1 || stderr.String() != want {
		t.Errorf("%d, %s", exit, stderr.String())
	}
}
