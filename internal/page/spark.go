package page

import (
	"fmt"
	"html/template"
	"strings"
)

const sparkWidth, sparkHeight = PointCount, 24

// sparkline draws the calls of the last hour as a line, and under it, in another
// colour, the failed calls. Only numbers are in it.
func sparkline(hour []Point) template.HTML {
	most := float64(1)
	for _, p := range hour {
		most = max(most, p.Rate()*PointEvery.Seconds())
	}
	var calls, failures strings.Builder
	failed := uint32(0)
	for i, p := range hour {
		x := PointCount - len(hour) + i
		y := func(n float64) float64 { return sparkHeight - 1 - n/most*(sparkHeight-2) }
		fmt.Fprintf(&calls, "%d,%.1f ", x, y(p.Rate()*PointEvery.Seconds()))
		if n := p.Failed + p.Parked; n > 0 {
			failed += n
			fmt.Fprintf(&failures, "M%d,%d V%.1f ", x, sparkHeight, y(max(float64(n), most/6))) // an outage has few calls: they must be seen
		}
	}
	label := fmt.Sprintf("Calls of the last hour, at most %s; failed: %s", rate(most/PointEvery.Seconds()), count(failed))
	if len(hour) == 0 {
		label = "No calls yet"
	}
	return template.HTML(fmt.Sprintf(`<svg class="spark" role="img" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" preserveAspectRatio="none"><title>%s</title><path class="failed" d="%s"/><polyline class="calls" points="%s"/></svg>`,
		sparkWidth, sparkHeight, label, strings.TrimSpace(failures.String()), strings.TrimSpace(calls.String()))) // #nosec G203 -- made of numbers alone
}
