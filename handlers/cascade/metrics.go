package cascade

import (
	"github.com/sluicehq/sluice/metrics"
)

var (
	rowsDeleted  = metrics.New(metrics.Metric{Name: "sluice_cascade_deleted_rows_total", Help: "Rows that cascades deleted.", Labels: []string{"table"}})
	messagesSent = metrics.New(metrics.Metric{Name: "sluice_cascade_messages_total", Help: "Messages of cascades, by reason.", Labels: []string{"table", "why"}})
	sweepsEnded  = metrics.New(metrics.Metric{Name: "sluice_cascade_sweeps_total", Help: "Finished sweeps.", Labels: []string{"table"}})
	rowsSwept    = metrics.New(metrics.Metric{Name: "sluice_cascade_swept_rows_total", Help: "Rows that sweeps found after the cascade.", Labels: []string{"table"}})
	stopped      = metrics.New(metrics.Metric{Name: "sluice_cascade_stops_total", Help: "Cascades ended because the parent exists again.", Labels: []string{"table"}})
)

// series are the metrics of one cascade, by the table of the children.
type series struct{ rows, messages, sweeps, swept, stops *metrics.Series }

func newSeries(m metrics.Meter) series {
	return series{rowsDeleted.Of(m), messagesSent.Of(m), sweepsEnded.Of(m), rowsSwept.Of(m), stopped.Of(m)}
}
