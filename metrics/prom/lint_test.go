package prom

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/commits"
	"github.com/sluicehq/sluice/internal/scrape"
	"github.com/sluicehq/sluice/internal/snapshot"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/sources/queue"
)

// busy has every hook called, so that every series is there.
func busy(m *Metrics) {
	rs := two()
	f := m.Flow(rs)
	f.Handled(context.Background(), &rec, rs[0], flow.Done, time.Second, nil)
	f.ParkFailed(&rec, nil, nil)
	bindAll(m)
	p, s := m.Poller(), poller.Shard{Table: "table", ID: "shard"}
	p.ShardStarted(s, "")
	p.Polled(poller.Poll{Shard: s})
	p.Lineage(poller.Lineage{Table: "table", Reading: 1})
	p.Memory(0, 1, 0)
	p.OpenGaps("table", 1)
	p.Checkpointed(1, time.Second, nil)
	p.Failed(s, "action", nil, 0)
	p.Dropped(s, 1)
	q := m.Queue()
	q.Received("queue", queue.Call{Messages: 1})
	q.Ended("queue", "settled")
	q.Hand("queue", queue.Hand{})
	m.Scan().Scanned(snapshot.Call{Table: "table"})
	m.Backfill().Progress(snapshot.Progress{Table: "table"})
	q.Deleted("queue", queue.Call{Messages: 2, Failed: 1})
	m.Ask(Status{
		Ready:       func() bool { return true },
		Held:        func() []flow.Held { return nil },
		DeadLetters: func() []deadletter.Count { return nil },
	})
}

// Names follow Prometheus' conventions: the linter is that of promtool check metrics.
func TestNamesAreConventional(t *testing.T) {
	reg := scrape.NewRegistry()
	busy(New(reg))
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if n, err := testutil.GatherAndCount(reg); err != nil || n < 60 {
		t.Errorf("only %d series to look at, %v", n, err)
	}
}

// OpenMetrics takes _total from a counter's name: two families must not have one
// name then.
func TestOpenMetricsFamilies(t *testing.T) {
	reg := scrape.NewRegistry()
	busy(New(reg))
	body := scraped(t, reg, "application/openmetrics-text; version=1.0.0", "application/openmetrics-text")
	if !strings.HasSuffix(body, "# EOF\n") {
		t.Error("the answer has no end")
	}
	families, family := map[string]bool{}, ""
	for line := range strings.Lines(body) {
		if f := strings.Fields(line); f[0] == "#" {
			if f[1] != "TYPE" {
				continue
			}
			if family = f[2]; families[family] {
				t.Errorf("two families are called %s", family)
			}
			families[family] = true
			if strings.HasSuffix(family, "_failed") {
				t.Errorf("%s: a label says the outcome", family)
			}
			continue
		}
		name, _, _ := strings.Cut(strings.FieldsFunc(line, func(r rune) bool { return r == '{' || r == ' ' })[0], " ")
		suffix, ok := strings.CutPrefix(name, family)
		if !ok || !slices.Contains([]string{"", "_total", "_bucket", "_sum", "_count", "_created"}, suffix) {
			t.Errorf("%s stands in family %s", name, family)
		}
	}
	if len(families) < 60 || !families["sluice_build_info"] {
		t.Errorf("%d families", len(families))
	}
}

func scraped(t *testing.T, reg prometheus.Gatherer, accept, kind string) string {
	t.Helper()
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	scrape.Handler(reg).ServeHTTP(w, r)
	if got := w.Header().Get("Content-Type"); w.Code != 200 || !strings.HasPrefix(got, kind) {
		t.Fatalf("%d %s: %.300s", w.Code, got, w.Body.String())
	}
	return w.Body.String()
}

// Who does not scrape protobuf has classic buckets, who does has native ones,
// too.
func TestHistogramsForEveryScraper(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	busy(New(reg))
	scrape := func(accept string) (kind, body string) {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		scrape.Handler(reg).ServeHTTP(w, r)
		return w.Header().Get("Content-Type"), w.Body.String()
	}
	if kind, body := scrape("text/plain"); !strings.HasPrefix(kind, "text/plain") || !strings.Contains(body, `sluice_handler_seconds_bucket{route="first",le="2"} 1`) {
		t.Errorf("as text (%s): %.300s", kind, body)
	}
	const protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	if kind, _ := scrape(protobuf); !strings.HasPrefix(kind, "application/vnd.google.protobuf") {
		t.Errorf("protobuf was asked for, %s came", kind)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range families {
		for _, m := range f.Metric {
			h := m.GetHistogram()
			if h == nil {
				continue
			}
			if n++; len(h.Bucket) == 0 || h.Schema == nil {
				t.Errorf("%s has %d classic buckets, native ones: %v", f.GetName(), len(h.Bucket), h.Schema != nil)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d histograms found", n)
	}
}

// None of what is called for every record, page or message allocates.
func BenchmarkHooks(b *testing.B) {
	m := New(prometheus.NewRegistry())
	busy(m)
	p, s := m.Poller(), poller.Shard{Table: "table", ID: "shard"}
	c, two, q := commits.Of(m, "sink"), declaredAs("sluice_projection_lost_total").Of(m), m.Queue()
	for _, bb := range []struct {
		name string
		call func()
	}{
		{"one of two labels", func() { two.Add(1, "table", "reason") }},
		{"commit", func() { c.Add(10, 1, time.Millisecond) }},
		{"poll", func() { p.Polled(poller.Poll{Shard: s, Records: 5, Took: time.Millisecond}) }},
		{"message ended", func() { q.Ended("queue", "settled") }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bb.call()
			}
		})
	}
}
