package prom

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/internal/snapshot"
)

func TestBackfill(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	scan, h := m.Scan(), m.Backfill()
	scan.Scanned(snapshot.Call{Table: "orders", Items: 700, Units: 128, Took: time.Second})
	scan.Scanned(snapshot.Call{Table: "orders", Units: 0.5})
	scan.Scanned(snapshot.Call{Table: "orders"})
	scan.Scanned(snapshot.Call{Table: "orders", Throttled: true, Err: errors.New("slow down")})
	scan.Scanned(snapshot.Call{Table: "orders", Err: errors.New("down")})
	h.Saved("orders", time.Second, nil)
	h.Saved("orders", time.Second, nil)
	h.Saved("orders", time.Second, errors.New("disk full"))
	h.Progress(snapshot.Progress{Table: "orders", Items: 7})
	h.Progress(snapshot.Progress{Table: "orders", Items: 700, Settled: 690, TableItems: 650, Segments: 8, Done: 3, Finished: true})
	h.Progress(snapshot.Progress{Table: "orders", Name: "v2", Items: 5})
	if got := samples(t, reg, "sluice_scan_seconds"); got["orders"] != 5 {
		t.Errorf("%v", got)
	}
	expectSeries(t, reg, `
# HELP sluice_backfill_expected_items Items of the table, as DynamoDB estimates.
# TYPE sluice_backfill_expected_items gauge
sluice_backfill_expected_items{backfill="",table="orders"} 650
sluice_backfill_expected_items{backfill="v2",table="orders"} 0
# HELP sluice_backfill_finished 1 when all items are settled.
# TYPE sluice_backfill_finished gauge
sluice_backfill_finished{backfill="",table="orders"} 1
sluice_backfill_finished{backfill="v2",table="orders"} 0
# HELP sluice_backfill_items_total Items that a backfill has read.
# TYPE sluice_backfill_items_total counter
sluice_backfill_items_total{backfill="",table="orders"} 700
sluice_backfill_items_total{backfill="v2",table="orders"} 5
# HELP sluice_backfill_saves_total Writes of progress.
# TYPE sluice_backfill_saves_total counter
sluice_backfill_saves_total{outcome="failed",table="orders"} 1
sluice_backfill_saves_total{outcome="stored",table="orders"} 2
# HELP sluice_backfill_segments Segments of a backfill.
# TYPE sluice_backfill_segments gauge
sluice_backfill_segments{backfill="",table="orders"} 8
sluice_backfill_segments{backfill="v2",table="orders"} 0
# HELP sluice_backfill_segments_done Finished segments.
# TYPE sluice_backfill_segments_done gauge
sluice_backfill_segments_done{backfill="",table="orders"} 3
sluice_backfill_segments_done{backfill="v2",table="orders"} 0
# HELP sluice_backfill_settled_items_total Items that a backfill has handled or parked.
# TYPE sluice_backfill_settled_items_total counter
sluice_backfill_settled_items_total{backfill="",table="orders"} 690
sluice_backfill_settled_items_total{backfill="v2",table="orders"} 0
# HELP sluice_read_units_total Read units of Scan calls.
# TYPE sluice_read_units_total counter
sluice_read_units_total{table="orders"} 128.5
# HELP sluice_scanned_items_total Items read by Scan.
# TYPE sluice_scanned_items_total counter
sluice_scanned_items_total{table="orders"} 700
# HELP sluice_scans_total Scan calls: with items, empty, throttled, or failed.
# TYPE sluice_scans_total counter
sluice_scans_total{outcome="empty",table="orders"} 2
sluice_scans_total{outcome="failed",table="orders"} 1
sluice_scans_total{outcome="items",table="orders"} 1
sluice_scans_total{outcome="throttled",table="orders"} 1
`, "sluice_backfill_expected_items", "sluice_backfill_finished", "sluice_backfill_items_total", "sluice_backfill_saves_total",
		"sluice_backfill_segments", "sluice_backfill_segments_done", "sluice_backfill_settled_items_total",
		"sluice_read_units_total", "sluice_scanned_items_total", "sluice_scans_total")
}
