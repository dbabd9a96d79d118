package router

import (
	"github.com/sluicehq/sluice/metrics"
)

var (
	unrouted   = metrics.New(metrics.Metric{Name: "sluice_unrouted_total", Help: "Records without a route: no route, untyped, filtered.", Labels: []string{"reason"}})
	passedOver = metrics.New(metrics.Metric{Name: "sluice_filtered_total", Help: "Records that the conditions of a route passed over.", Labels: []string{"route"}, CloudWatch: "Filtered", Dimension: "Route"})
)

// Count counts by m the records without a route, and for each route the records that
// its filters refuse. run.Main calls Count. Call it before Match, after the last
// route was added. A second call replaces m.
func (r *Router) Count(m metrics.Meter) {
	var none [Filtered + 1]func(float64)
	for why := range none {
		if none[why] = unrouted.Of(m).Bind(Reason(why).String()); none[why] == nil {
			none[why] = func(float64) {}
		}
	}
	r.fixed()
	r.counted = &none
	passed := passedOver.Of(m)
	for _, rt := range r.routes {
		if len(rt.filters) > 0 {
			rt.passedOver = passed.Bind(rt.Name)
		}
	}
}
