package projection

import (
	"github.com/sluicehq/sluice/metrics"
)

var (
	written   = metrics.New(metrics.Metric{Name: "sluice_projection_documents_total", Help: "Documents written (index), deleted, or already newer.", Labels: []string{"table", "action"}})
	unchanged = metrics.New(metrics.Metric{Name: "sluice_projection_unchanged_total", Help: "Changes that leave the document as it is.", Labels: []string{"table"}})
	dropped   = metrics.New(metrics.Metric{Name: "sluice_projection_dropped_fields_total", Help: "Attributes left out: another field has their name.", Labels: []string{"table"}})
	notShown  = metrics.New(metrics.Metric{Name: "sluice_projection_lost_total", Help: "Changes that a document does not show (not_raised, began_anew).", Labels: []string{"table", "reason"}, CloudWatch: "ProjectionLost"})
)

// series are the metrics of one projection.
type series struct{ written, unchanged, dropped, lost *metrics.Series }

func newSeries(m metrics.Meter) series {
	return series{written.Of(m), unchanged.Of(m), dropped.Of(m), notShown.Of(m)}
}
