// Package scrape has the registry of the daemon's metrics, and the page that
// Prometheus scrapes.
package scrape

import (
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// NewRegistry returns a registry with the metrics of the Go runtime, the process
// and the program's version.
func NewRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	return reg
}

// Handler serves the metrics of reg as text, OpenMetrics or protobuf.
func Handler(reg prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(prometheus.GathererFunc(distinct(reg.Gather)), promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// distinct removes a counter of the Go collector. In OpenMetrics its name without
// _total would equal the gauge go_memstats_alloc_bytes.
func distinct[F interface{ GetName() string }](gather func() ([]F, error)) func() ([]F, error) {
	return func() ([]F, error) {
		all, err := gather()
		return slices.DeleteFunc(all, func(f F) bool { return f.GetName() == "go_memstats_alloc_bytes_total" }), err
	}
}
