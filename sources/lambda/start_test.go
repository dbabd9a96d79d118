package lambda

import (
	"strings"
	"testing"
)

func TestStartable(t *testing.T) {
	for _, name := range []string{"AWS_LAMBDA_RUNTIME_API", "_LAMBDA_SERVER_PORT"} {
		if err := startable(func(n string) string { return map[string]string{name: "127.0.0.1:9001"}[n] }); err != nil {
			t.Errorf("with %s: %v", name, err)
		}
	}
	err := startable(func(string) string { return "" })
	if err == nil {
		t.Fatal("a function started by hand is not told so")
	}
	for _, want := range []string{"AWS_LAMBDA_RUNTIME_API", "Invoke", "run.Main"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: does not name %s", err, want)
		}
	}
}
