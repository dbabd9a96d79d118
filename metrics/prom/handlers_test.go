package prom

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/handlers/projection"
)

func TestHandlers(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	p := m.Projection()
	p.Written("orders", document.Put)
	p.Written("orders", document.Put)
	p.Written("orders", document.Delete)
	p.Unchanged("orders")
	p.Dropped("orders", "a")
	p.Dropped("orders", "b")
	p.Lost(&sluice.Record{Table: "orders"}, projection.BeganAnew)
	m.Rollup().Dropped(nil, dynamo.Add{Table: "parents"})
	expectSeries(t, reg, `
# HELP sluice_count_additions_lost_total Additions lost because the parent is missing.
# TYPE sluice_count_additions_lost_total counter
sluice_count_additions_lost_total{table="parents"} 1
# HELP sluice_projection_documents_total Documents written (index), deleted, or already newer.
# TYPE sluice_projection_documents_total counter
sluice_projection_documents_total{action="delete",table="orders"} 1
sluice_projection_documents_total{action="index",table="orders"} 2
# HELP sluice_projection_dropped_fields_total Attributes left out: another field has their name.
# TYPE sluice_projection_dropped_fields_total counter
sluice_projection_dropped_fields_total{table="orders"} 2
# HELP sluice_projection_lost_total Changes that a document does not show (not_raised, began_anew).
# TYPE sluice_projection_lost_total counter
sluice_projection_lost_total{reason="began_anew",table="orders"} 1
# HELP sluice_projection_unchanged_total Changes that leave the document as it is.
# TYPE sluice_projection_unchanged_total counter
sluice_projection_unchanged_total{table="orders"} 1
`, "sluice_count_additions_lost_total", "sluice_projection_documents_total", "sluice_projection_dropped_fields_total", "sluice_projection_lost_total", "sluice_projection_unchanged_total")
}
