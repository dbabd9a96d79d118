package prom

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/internal/snapshot"
)

type snapshotMetrics struct {
	descs
	calls, items, units                                *prometheus.CounterVec
	seconds                                            *prometheus.HistogramVec
	saves                                              *prometheus.CounterVec
	read, settled, expected, segments, finished, atEnd *prometheus.Desc

	mu       sync.Mutex
	progress map[[2]string]snapshot.Progress // by table and name
}

func newSnapshotMetrics(f factory) *snapshotMetrics {
	m := &snapshotMetrics{
		calls:    f.counter("sluice_scans_total", "Scan calls: with items, empty, throttled, or failed.", "table", "outcome"),
		items:    f.counter("sluice_scanned_items_total", "Items read by Scan.", "table"),
		units:    f.counter("sluice_read_units_total", "Read units of Scan calls.", "table"),
		saves:    f.counter("sluice_backfill_saves_total", "Writes of progress.", "table", "outcome"),
		seconds:  f.histogram("sluice_scan_seconds", "Duration of Scan calls.", []float64{.01, .05, .2, 1, 5, 30}, "table"),
		progress: make(map[[2]string]snapshot.Progress),
	}
	m.read = m.desc("sluice_backfill_items_total", "Items that a backfill has read.", "table", "backfill")
	m.settled = m.desc("sluice_backfill_settled_items_total", "Items that a backfill has handled or parked.", "table", "backfill")
	m.expected = m.desc("sluice_backfill_expected_items", "Items of the table, as DynamoDB estimates.", "table", "backfill")
	m.segments = m.desc("sluice_backfill_segments", "Segments of a backfill.", "table", "backfill")
	m.atEnd = m.desc("sluice_backfill_segments_done", "Finished segments.", "table", "backfill")
	m.finished = m.desc("sluice_backfill_finished", "1 when all items are settled.", "table", "backfill")
	return m
}

// Collect reports the last progress. Its counts go on across restarts.
func (m *snapshotMetrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gauge := gauges(ch)
	for _, p := range m.progress {
		ch <- prometheus.MustNewConstMetric(m.read, prometheus.CounterValue, float64(p.Items), p.Table, p.Name)
		ch <- prometheus.MustNewConstMetric(m.settled, prometheus.CounterValue, float64(p.Settled), p.Table, p.Name)
		gauge(m.expected, float64(p.TableItems), p.Table, p.Name)
		gauge(m.segments, float64(p.Segments), p.Table, p.Name)
		gauge(m.atEnd, float64(p.Done), p.Table, p.Name)
		gauge(m.finished, oneIf(p.Finished), p.Table, p.Name)
	}
}

// Scan returns hooks for scans of tables.
func (m *Metrics) Scan() snapshot.ScanHooks {
	s := m.snapshot
	return snapshot.ScanHooks{Scanned: func(c snapshot.Call) {
		how := outcome(c.Err, c.Items, "items")
		if c.Throttled {
			how = "throttled"
		}
		s.calls.WithLabelValues(c.Table, how).Inc()
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
			s.mu.Lock()
			defer s.mu.Unlock()
			s.progress[[2]string{p.Table, p.Name}] = p
		},
		Saved: func(table string, _ time.Duration, err error) {
			s.saves.WithLabelValues(table, outcome(err, 1, "stored")).Inc()
		},
	}
}
