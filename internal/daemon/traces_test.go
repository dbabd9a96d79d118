package daemon

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/metrics/prom"
)

// A collector that hangs does not hold up the end of a daemon.
func TestACollectorThatHangs(t *testing.T) {
	asked, release := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-release
	}))
	defer server.Close()
	defer close(release)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_TRACES_SAMPLER", "always_on")
	ctx, end := context.WithCancel(t.Context())
	var log bytes.Buffer
	tracer, stop, err := startTraces(ctx, Options{Grace: 100 * time.Millisecond}, os.Getenv, prom.New(prometheus.NewRegistry()), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	tracer.Page(ctx, []sluice.Record{{Table: "orders"}}).Submitted()
	end()
	stop() // while the collector hangs
	if !strings.Contains(log.String(), "the last traces are lost") {
		t.Errorf("log: %s", log.String())
	}
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Error("the collector was not asked")
	}
}

// Without the variables there are no traces, and with a wrong one no start.
func TestTracesAreOff(t *testing.T) {
	start := func(env map[string]string) (bool, error) {
		for name, value := range env {
			t.Setenv(name, value)
		}
		tracer, stop, err := startTraces(t.Context(), Options{}, os.Getenv, nil, slog.New(slog.DiscardHandler))
		if err == nil {
			stop()
		}
		return tracer != nil, err
	}
	if on, err := start(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "", "OTEL_TRACES_EXPORTER": ""}); on || err != nil {
		t.Errorf("on %v, %v", on, err)
	}
	if _, err := start(map[string]string{"OTEL_TRACES_EXPORTER": "jaeger"}); err == nil || !strings.Contains(err.Error(), `OTEL_TRACES_EXPORTER="jaeger": want otlp or none`) {
		t.Error(err)
	}
}
