package prom

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/handlers/cascade"
)

func TestCascade(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	h := New(reg).Cascade()
	h.Deleted("points", 25)
	h.Deleted("points", 3)
	h.Sent("points", cascade.HandOver)
	h.Sent("points", cascade.Sweep)
	h.Sent("points", cascade.Sweep)
	h.Swept("points", 0)
	h.Swept("points", 7)
	h.Stopped("points")
	expectSeries(t, reg, `
# HELP sluice_cascade_deleted_rows_total Rows that cascades deleted.
# TYPE sluice_cascade_deleted_rows_total counter
sluice_cascade_deleted_rows_total{table="points"} 28
# HELP sluice_cascade_messages_total Messages of cascades, by reason.
# TYPE sluice_cascade_messages_total counter
sluice_cascade_messages_total{table="points",why="hand-over"} 1
sluice_cascade_messages_total{table="points",why="sweep"} 2
# HELP sluice_cascade_stops_total Cascades ended because the parent exists again.
# TYPE sluice_cascade_stops_total counter
sluice_cascade_stops_total{table="points"} 1
# HELP sluice_cascade_sweeps_total Finished sweeps.
# TYPE sluice_cascade_sweeps_total counter
sluice_cascade_sweeps_total{table="points"} 2
# HELP sluice_cascade_swept_rows_total Rows that sweeps found after the cascade.
# TYPE sluice_cascade_swept_rows_total counter
sluice_cascade_swept_rows_total{table="points"} 7
`, "sluice_cascade_deleted_rows_total", "sluice_cascade_messages_total", "sluice_cascade_stops_total", "sluice_cascade_sweeps_total", "sluice_cascade_swept_rows_total")
}
