package prom

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
	_ "github.com/sluicehq/sluice/handlers/cascade"
	_ "github.com/sluicehq/sluice/handlers/escalation"
	_ "github.com/sluicehq/sluice/handlers/projection"
	_ "github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/internal/commits"
	"github.com/sluicehq/sluice/metrics"
	"github.com/sluicehq/sluice/router"
	_ "github.com/sluicehq/sluice/sinks/dynamodb"
	_ "github.com/sluicehq/sluice/sinks/opensearch"
	_ "github.com/sluicehq/sluice/tracing"
)

// bindAll has every metric that is declared appear.
func bindAll(m *Metrics) {
	for _, one := range metrics.All() {
		if add := one.Of(m).Bind(make([]string, len(one.Labels))...); add != nil {
			add(1)
		}
	}
}

func declaredAs(name string) *metrics.Metric {
	for _, m := range metrics.All() {
		if m.Name == name {
			return m
		}
	}
	panic(name)
}

func TestCommits(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	c := commits.Of(m, "queue")
	c.Add(10, 3, time.Second)
	c.Add(1, 0, 0)
	commits.Of(m, "index").Add(5, 0, 0)
	expectSeries(t, reg, `
# HELP sluice_commit_items_total Items in commits: committed or failed.
# TYPE sluice_commit_items_total counter
sluice_commit_items_total{outcome="committed",sink="index"} 5
sluice_commit_items_total{outcome="committed",sink="queue"} 8
sluice_commit_items_total{outcome="failed",sink="index"} 0
sluice_commit_items_total{outcome="failed",sink="queue"} 3
`, "sluice_commit_items_total")
	for _, name := range []string{"sluice_commit_batch_items", "sluice_commit_seconds"} {
		if got := samples(t, reg, name); got["queue"] != 2 || got["index"] != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Counters are there before the first record, so that the first increase is seen.
func TestRouterIsCounted(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	r := router.New(router.TypeFrom(router.Table(map[string]string{"orders": "order"})))
	r.Handle("order#*", func(context.Context, *sluice.Record) error { return nil }, router.Name("large"), router.When(func(*sluice.Record) bool { return false }))
	r.Count(New(reg))
	expect := func(filtered string) {
		t.Helper()
		expectSeries(t, reg, `
# HELP sluice_filtered_total Records that the conditions of a route passed over.
# TYPE sluice_filtered_total counter
sluice_filtered_total{route="large"} `+filtered+`
# HELP sluice_unrouted_total Records without a route: no route, untyped, filtered.
# TYPE sluice_unrouted_total counter
sluice_unrouted_total{reason="filtered"} `+filtered+`
sluice_unrouted_total{reason="no route"} 0
sluice_unrouted_total{reason="untyped"} 0
`, "sluice_filtered_total", "sluice_unrouted_total")
	}
	expect("0")
	if _, err := r.Match(nil, &sluice.Record{Table: "orders", EventName: sluice.Insert}); err != nil {
		t.Error(err)
	}
	expect("1")
}
