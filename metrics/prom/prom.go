package prom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the series of one process. All methods are safe for concurrent
// use.
type Metrics struct {
	flow   flowMetrics
	router routerMetrics
	batch  batchMetrics
	poller *pollerMetrics
	queue  *queueMetrics
	units  *prometheus.CounterVec

	cascade    cascadeMetrics
	escalation escalationMetrics
	snapshot   snapshotMetrics
	documents  documentMetrics
	handlers   handlerMetrics
	status     *statusMetrics
}

// New registers the series with reg; it panics when they are registered there
// already.
func New(reg prometheus.Registerer) *Metrics {
	newBuildInfo(reg)
	return &Metrics{
		flow:   newFlowMetrics(reg),
		router: newRouterMetrics(reg),
		batch:  newBatchMetrics(reg),
		poller: newPollerMetrics(reg),
		queue:  newQueueMetrics(reg),
		units:  newUnits(reg),

		cascade:    newCascadeMetrics(reg),
		escalation: newEscalationMetrics(reg),
		snapshot:   newSnapshotMetrics(reg),
		documents:  newDocumentMetrics(reg),
		handlers:   newHandlerMetrics(reg),
		status:     newStatusMetrics(reg),
	}
}

// histogram has classic buckets for those who scrape the text format, and a
// native one, 10 % wide, for those who scrape protobuf.
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
