package main

import (
	"context"
	"fmt"
	"github.com/sluicehq/sluice/internal/localtest"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	if os.Getenv("FUNCTION") == "silent" { // a Lambda function that takes its event, and is not heard of again
		if _, err := http.Get("http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/invocation/next"); err == nil {
			select {}
		}
		os.Exit(1)
	}
	completionEnd = localtest.Patience
	testscript.Main(m, map[string]func(){"sluice": main})
}

func TestScripts(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Condition: func(name string) (bool, error) {
			if name == "root" { // who may read everything
				return os.Getuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Setup: func(e *testscript.Env) error {
			// Nothing outside the test is looked for.
			e.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			e.Setenv("AWS_REGION", "us-east-1")
			e.Setenv("AWS_ACCESS_KEY_ID", "test")
			e.Setenv("AWS_SECRET_ACCESS_KEY", "test")
			return nil
		},
	})
}

// execute runs one command of this process; a variable that is empty is not set.
func execute(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	c := &cli{stdin: strings.NewReader(""), stdout: stdout, stderr: stderr, lookup: func(name string) (string, bool) {
		return env(name), env(name) != ""
	}}
	return c.execute(ctx, args)
}
