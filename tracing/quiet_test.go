package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// secretStarts makes this binary a process of TestSecrets.
const secretStarts = "SLUICE_TRACING_TEST_SECRETS"

func TestMain(m *testing.M) {
	if os.Getenv(secretStarts) == "" {
		os.Exit(m.Run())
	}
	ctx := context.Background()
	tr, err := Start(ctx, Options{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	tr.Page(ctx, []sluice.Record{{Table: "orders"}}).Submitted()
	if err := errors.Join(tr.Flush(ctx), tr.Stop(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, err)
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
		"OTEL_TRACES_SAMPLER=s3cr3t":                                       "want one of always_on",
		"OTEL_RESOURCE_ATTRIBUTES=s3cr3t":                                  "want NAME=VALUE",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + server.URL + "/s3cr3t":     "403 Forbidden",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:1/s3cr3t":     "connection refused",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://a:s3cr3t@127.0.0.1:x/y": "",
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), secretStarts+"=1", "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, env)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		if strings.Contains(out.String(), "s3cr3t") || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v, want %q and no secret:\n%s", env, err, want, out.String())
		}
	}
}
