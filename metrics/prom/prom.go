package prom

import (
	"context"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/sluicehq/sluice/internal/buildversion"
	"github.com/sluicehq/sluice/metrics"
	"github.com/sluicehq/sluice/sources/queue"
)

// Metrics are the series of one process. All methods are safe for concurrent
// use.
type Metrics struct {
	flow     flowMetrics
	poller   *pollerMetrics
	queue    queue.Hooks
	snapshot *snapshotMetrics
	status   *statusMetrics
	reloaded func(outcome string)

	exemplar func(context.Context) map[string]string // nil: none

	counters   map[*metrics.Metric]*prometheus.CounterVec
	histograms map[*metrics.Metric]*prometheus.HistogramVec
}

// New registers the series with reg, including metrics declared by metrics.New. It
// panics if they are already registered there.
func New(reg prometheus.Registerer) *Metrics {
	f := factory{promauto.With(reg)}
	f.gauge("sluice_build_info", "1, with the versions.", "version", "goversion").WithLabelValues(buildversion.Get(), runtime.Version()).Set(1)
	m := &Metrics{
		flow:     newFlowMetrics(f),
		poller:   newPollerMetrics(f),
		queue:    newQueueHooks(f),
		snapshot: newSnapshotMetrics(f),
		status:   newStatusMetrics(),
		reloaded: newReloaded(f),
	}
	reg.MustRegister(m.poller, m.snapshot, m.status)
	m.declared(f)
	return m
}

// factory makes series and registers them.
type factory struct{ promauto.Factory }

func (f factory) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func (f factory) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return f.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// histogram has classic buckets for scrapes in text format, and a native one, 10 %
// wide, for scrapes in protobuf.
func (f factory) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return f.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}, labels)
}

// descs are the series that a collector makes at each scrape.
type descs []*prometheus.Desc

func (all *descs) desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	*all = append(*all, d)
	return d
}

// Describe implements prometheus.Collector.
func (all *descs) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range *all {
		ch <- d
	}
}

// gauges returns a function that sends the value of a gauge to ch.
func gauges(ch chan<- prometheus.Metric) func(d *prometheus.Desc, v float64, labels ...string) {
	return func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
}

// outcome says how a call ended: some is that of a call with n things.
func outcome(err error, n int, some string) string {
	switch {
	case err != nil:
		return "failed"
	case n == 0:
		return "empty"
	}
	return some
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
