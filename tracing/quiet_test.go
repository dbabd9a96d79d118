package tracing

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
)

// TestSecretStarts is a process of TestSecrets.
func TestSecretStarts(t *testing.T) {
	if os.Getenv("SECRET_STARTS") == "" {
		t.Skip("runs for TestSecrets")
	}
	tr, err := Start(t.Context(), Options{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		t.Fatal(err)
	}
	tr.Page(t.Context(), []sluice.Record{{Table: "orders"}}).Submitted()
	if err := tr.Flush(t.Context()); err != nil {
		t.Log(err)
	}
	if err := tr.Stop(t.Context()); err != nil {
		t.Log(err)
	}
}

// Values of variables, and what a collector answers, are not in the log. The reason of
// a failure is.
func TestSecrets(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, "no such key: s3cr3t") //nolint:errcheck // the client closes
	}))
	defer server.Close()
	for env, want := range map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS=s3cr3t":                                "403 Forbidden",
		"OTEL_EXPORTER_OTLP_HEADERS=key=%s3cr3t":                           "403 Forbidden",
		"OTEL_TRACES_SAMPLER=s3cr3t":                                       "errUnsupportedSampler",
		"OTEL_RESOURCE_ATTRIBUTES=s3cr3t":                                  "want NAME=VALUE",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + server.URL + "/s3cr3t":     "403 Forbidden",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:1/s3cr3t":     "connection refused",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://a:s3cr3t@127.0.0.1:x/y": "",
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSecretStarts$", "-test.v")
		cmd.Env = append(os.Environ(), "SECRET_STARTS=1", "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, env)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		if strings.Contains(out.String(), "s3cr3t") || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v, want %q and no secret:\n%s", env, err, want, out.String())
		}
	}
}
