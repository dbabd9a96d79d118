package router

import (
	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/metrics"
)

var (
	unrouted   = metrics.New(metrics.Metric{Name: "sluice_unrouted_total", Help: "Records without a route: no route, untyped, filtered.", Labels: []string{"reason"}})
	passedOver = metrics.New(metrics.Metric{Name: "sluice_filtered_total", Help: "Records that the conditions of a route passed over.", Labels: []string{"route"}, CloudWatch: "Filtered", Dimension: "Route"})
)

// Count has the router count with m the records that take no route, and those that
// the filters of a route pass over. The program of run.Main does so by itself. The
// table is fixed then; call Count before Match.
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
