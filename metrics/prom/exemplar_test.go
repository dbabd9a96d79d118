package prom

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/scrape"
)

type traced struct{}

// The histograms of a call whose context leads to a trace have it for an exemplar, in
// OpenMetrics.
func TestExemplars(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	rs := two()
	m := New(reg)
	m.Exemplars(func(ctx context.Context) map[string]string {
		if id, ok := ctx.Value(traced{}).(string); ok {
			return map[string]string{"trace_id": id}
		}
		return nil
	})
	h := m.Flow(rs)
	h.Handled(context.WithValue(t.Context(), traced{}, "4bf9"), &rec, rs[0], flow.Done, time.Millisecond, nil)
	h.Handled(t.Context(), &rec, rs[1], flow.Done, time.Millisecond, nil)
	req := httptest.NewRequest("GET", "/metrics", nil)
	req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	w := httptest.NewRecorder()
	scrape.Handler(reg).ServeHTTP(w, req)
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sluice_handler_seconds", "sluice_lag_seconds"} {
		got := ""
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, name+"_bucket") && strings.Contains(line, " # ") {
				got += line
			}
		}
		if strings.Count(got, "\n") != 1 || !strings.Contains(got, `route="first"`) || !strings.Contains(got, `# {trace_id="4bf9"}`) {
			t.Errorf("exemplars of %s: %q", name, got)
		}
	}
}
