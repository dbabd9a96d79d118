package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
)

type routerMetrics struct {
	unrouted [router.Filtered + 1]prometheus.Counter
}

func newRouterMetrics(reg prometheus.Registerer) routerMetrics {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_unrouted_total",
		Help: "Records without a route: no route, untyped, filtered.",
	}, []string{"reason"})
	reg.MustRegister(vec)
	var m routerMetrics
	for r := range m.unrouted {
		m.unrouted[r] = vec.WithLabelValues(router.Reason(r).String())
	}
	return m
}

// Router returns hooks for a router.
func (m *Metrics) Router() router.Hooks {
	return router.Hooks{Unrouted: func(_ *sluice.Record, why router.Reason) { m.router.unrouted[why].Inc() }}
}
