package router

import (
	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/metrics"
)

var (
	unrouted   = metrics.New(metrics.Metric{Name: "sluice_unrouted_total", Help: "Records without a route: no route, untyped, filtered.", Labels: []string{"reason"}})
	passedOver = metrics.New(metrics.Metric{Name: "sluice_filtered_total", Help: "Records that the conditions of a route passed over.", Labels: []string{"route"}, CloudWatch: "Filtered", Dimension: "Route"})
)

// Count makes the router count in m the records without a route, and the records
// that a route's filters refuse. The program of run.Main calls it for you. Call
// Count before Match: it fixes the table.
func (r *Router) Count(m metrics.Meter) {
	var none [Filtered + 1]func(float64)
	for why := range none {
		if none[why] = unrouted.Of(m).Bind(Reason(why).String()); none[why] == nil {
			none[why] = func(float64) {}
		}
	}
	r.OnUnrouted(func(_ *sluice.Record, why Reason) { none[why](1) })
	r.fixed()
	passed := passedOver.Of(m)
	for _, rt := range r.routes {
		if len(rt.filters) > 0 {
			rt.passedOver = passed.Bind(rt.Name)
		}
	}
}
