package prom_test

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/metrics/prom"
	"github.com/sluicehq/sluice/router"
)

func ExampleNew() {
	registry := prometheus.NewRegistry() // or your own
	m := prom.New(registry)
	r := router.New()
	r.Handle("order#INSERT", func(context.Context, *sluice.Record) error { return nil })
	r.Count(m)
	options := flow.Options{Hooks: m.Flow(r)} // of poller.Options or flow.Open
	http.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	_ = options
}
