package prom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/internal/snapshot"
)

type snapshotMetrics struct {
	calls, items, units *prometheus.CounterVec
	seconds             *prometheus.HistogramVec
	saves               *prometheus.CounterVec
	read, settled       *grown
	expected, finished  *prometheus.GaugeVec
	segments, done      *prometheus.GaugeVec
}

func newSnapshotMetrics(reg prometheus.Registerer) snapshotMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"table", "backfill"})
		reg.MustRegister(g)
		return g
	}
	m := snapshotMetrics{
		calls: counter("sluice_scans_total", "Scan calls: with items, empty, throttled, or failed.", "table", "outcome"),
		items: counter("sluice_scanned_items_total", "Items read by Scan.", "table"),
		units: counter("sluice_read_units_total", "Read units of Scan calls.", "table"),
		saves: counter("sluice_backfill_saves_total", "Writes of progress.", "table", "outcome"),
		seconds: prometheus.NewHistogramVec(histogram("sluice_scan_seconds",
			"Duration of Scan calls.", .01, .05, .2, 1, 5, 30), []string{"table"}),
		read:     newGrown("sluice_backfill_items_total", "Items that a backfill has read.", "table", "backfill"),
		settled:  newGrown("sluice_backfill_settled_items_total", "Items that a backfill has handled or parked.", "table", "backfill"),
		expected: gauge("sluice_backfill_expected_items", "Items of the table, as DynamoDB estimates."),
		segments: gauge("sluice_backfill_segments", "Segments of a backfill."),
		done:     gauge("sluice_backfill_segments_done", "Finished segments."),
		finished: gauge("sluice_backfill_finished", "1 when all items are settled."),
	}
	reg.MustRegister(m.seconds, m.read, m.settled)
	return m
}

// Scan returns hooks for scans of tables.
func (m *Metrics) Scan() snapshot.ScanHooks {
	s := m.snapshot
	return snapshot.ScanHooks{Scanned: func(c snapshot.Call) {
		outcome := "items"
		switch {
		case c.Throttled:
			outcome = "throttled"
		case c.Err != nil:
			outcome = "failed"
		case c.Items == 0:
			outcome = "empty"
		}
		s.calls.WithLabelValues(c.Table, outcome).Inc()
		s.items.WithLabelValues(c.Table).Add(float64(c.Items))
		s.units.WithLabelValues(c.Table).Add(c.Units)
		s.seconds.WithLabelValues(c.Table).Observe(c.Took.Seconds())
	}}
}

// Backfill returns hooks for backfills.
func (m *Metrics) Backfill() snapshot.Hooks {
	s := m.snapshot
	return snapshot.Hooks{
		Progress: func(p snapshot.Progress) {
			for gauge, value := range map[*prometheus.GaugeVec]float64{
				s.expected: float64(p.TableItems),
				s.segments: float64(p.Segments), s.done: float64(p.Done), s.finished: oneIf(p.Finished),
			} {
				gauge.WithLabelValues(p.Table, p.Name).Set(value)
			}
			s.read.set(float64(p.Items), p.Table, p.Name)
			s.settled.set(float64(p.Settled), p.Table, p.Name)
		},
		Saved: func(table string, _ time.Duration, err error) {
			outcome := "stored"
			if err != nil {
				outcome = "failed"
			}
			s.saves.WithLabelValues(table, outcome).Inc()
		},
	}
}
