package prom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/effect/document"
)

type documentMetrics struct {
	conflicts, superseded, retried, rejected *prometheus.CounterVec

	requests       *prometheus.CounterVec
	bytes, seconds prometheus.Histogram
}

func newDocumentMetrics(reg prometheus.Registerer) documentMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"index"}, labels...))
	}
	m := documentMetrics{
		conflicts:  counter("sluice_document_conflicts_total", "Writes that found a newer document."),
		superseded: counter("sluice_documents_superseded_total", "Writes of documents replaced within their request."),
		retried:    counter("sluice_document_retries_total", "Writes of documents that were tried again, by error.", "type"),
		rejected:   counter("sluice_documents_rejected_total", "Writes of documents that can never succeed, by error.", "type"),
	}
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_bulk_requests_total", Help: "Bulk requests: answered, or failed as a whole.",
	}, []string{"outcome"})
	m.bytes = prometheus.NewHistogram(histogram("sluice_bulk_request_bytes",
		"Size of bulk requests.", 1<<10, 8<<10, 64<<10, 256<<10, 1<<20, 4<<20, 16<<20))
	m.seconds = prometheus.NewHistogram(histogram("sluice_bulk_request_seconds",
		"Duration of bulk requests.", .005, .02, .1, .5, 2, 10, 60))
	reg.MustRegister(m.requests, m.bytes, m.seconds)
	reg.MustRegister(m.conflicts, m.superseded, m.retried, m.rejected)
	return m
}

// Documents are hooks for a sink that writes documents, under the names that
// package sinks/opensearch has for them; its Requested has more than is wanted
// here.
type Documents struct{ m *documentMetrics }

// Documents returns hooks for a sink that writes documents.
func (m *Metrics) Documents() Documents { return Documents{&m.documents} }

// Conflict is called when what is there is newer.
func (d Documents) Conflict(op *document.Op) { d.m.conflicts.WithLabelValues(op.IndexLabel()).Inc() }

// Superseded is called when a later write stands for one.
func (d Documents) Superseded(op *document.Op) { d.m.superseded.WithLabelValues(op.IndexLabel()).Inc() }

// Retried is called when a write is tried again.
func (d Documents) Retried(e *document.Error) {
	d.m.retried.WithLabelValues(e.IndexLabel(), e.Type).Inc()
}

// Rejected is called when a write can never succeed.
func (d Documents) Rejected(e *document.Error) {
	d.m.rejected.WithLabelValues(e.IndexLabel(), e.Type).Inc()
}

// Requested is called after a bulk request of so many bytes; err is that of the
// whole.
func (d Documents) Requested(bytes int, took time.Duration, err error) {
	outcome := "answered"
	if err != nil {
		outcome = "failed"
	}
	d.m.requests.WithLabelValues(outcome).Inc()
	d.m.bytes.Observe(float64(bytes))
	d.m.seconds.Observe(took.Seconds())
}
