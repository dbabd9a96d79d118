package prom

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/metrics"
)

// Metrics are the series of one process. All methods are safe for concurrent
// use.
type Metrics struct {
	flow     flowMetrics
	poller   *pollerMetrics
	queue    *queueMetrics
	snapshot snapshotMetrics
	status   *statusMetrics
	reloads  reloadMetrics

	exemplar func(context.Context) map[string]string // nil: none

	counters   map[*metrics.Metric]*prometheus.CounterVec
	histograms map[*metrics.Metric]*prometheus.HistogramVec
}

// New registers the series with reg, including metrics declared by metrics.New. It
// panics if they are already registered there.
func New(reg prometheus.Registerer) *Metrics {
	newBuildInfo(reg)
	m := &Metrics{
		flow:     newFlowMetrics(reg),
		poller:   newPollerMetrics(reg),
		queue:    newQueueMetrics(reg),
		snapshot: newSnapshotMetrics(reg),
		status:   newStatusMetrics(reg),
		reloads:  newReloadMetrics(reg),
	}
	m.declared(reg)
	return m
}

// histogram has classic buckets for scrapes in text format, and a native one, 10 %
// wide, for scrapes in protobuf.
func histogram(name, help string, buckets ...float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
