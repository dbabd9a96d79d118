package lambdatraces

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/sources/lambda"
)

// An answer waits for the export, but not beyond the deadline of its invocation.
func TestDeadline(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_TRACES_SAMPLER", "always_on")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
	o := lambda.Options{Logger: slog.New(slog.DiscardHandler)}
	if err := Start(t.Context(), &o, "", os.Getenv); err != nil {
		t.Fatal(err)
	}
	o.FlowHooks.Tracer.Page(t.Context(), []sluice.Record{{Table: "orders"}}).Submitted()
	o.Invoked(lambda.Invocation{Deadline: time.Now()})
	if n := asked.Load(); n != 0 {
		t.Errorf("%d exports after the deadline", n)
	}
	o.Invoked(lambda.Invocation{})
	if n := asked.Load(); n != 1 {
		t.Errorf("%d exports, want 1", n)
	}
	now := time.Now()
	for left, want := range map[time.Duration]time.Duration{
		time.Minute: time.Second, time.Second: time.Second / 2, 0: 0, -time.Second: -time.Second / 2,
	} {
		if got := flushWithin(now, now.Add(left)); got != want {
			t.Errorf("%v are left: waits %v, want %v", left, got, want)
		}
	}
}
