package prom

import (
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// NewRegistry returns a registry that holds what is known of the Go runtime,
// the process and the program's version.
func NewRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	return reg
}

// Handler answers scrapes of what reg gathers, as text, OpenMetrics or protobuf.
func Handler(reg prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(prometheus.GathererFunc(distinct(reg.Gather)), promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// distinct leaves out a counter of the Go collector: OpenMetrics has a counter's
// name without _total, and go_memstats_alloc_bytes is a gauge.
func distinct[F interface{ GetName() string }](gather func() ([]F, error)) func() ([]F, error) {
	return func() ([]F, error) {
		all, err := gather()
		return slices.DeleteFunc(all, func(f F) bool { return f.GetName() == "go_memstats_alloc_bytes_total" }), err
	}
}
