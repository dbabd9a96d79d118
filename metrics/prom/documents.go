package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/document"
)

type documentMetrics struct {
	conflicts, superseded, retried, rejected *prometheus.CounterVec
}

func newDocumentMetrics(reg prometheus.Registerer) documentMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"index"}, labels...))
	}
	m := documentMetrics{
		conflicts:  counter("sluice_document_conflicts_total", "Writes of documents that had nothing to do: what is there is newer."),
		superseded: counter("sluice_documents_superseded_total", "Writes of documents that were left out for a later one in the same request."),
		retried:    counter("sluice_document_retries_total", "Writes of documents that were tried again, by the type of what the cluster said; empty when there was no answer.", "type"),
		rejected:   counter("sluice_documents_rejected_total", "Writes of documents that can never succeed, by the type of what the cluster said; empty when they were not sent.", "type"),
	}
	reg.MustRegister(m.conflicts, m.superseded, m.retried, m.rejected)
	return m
}

// Documents are hooks for a sink that writes documents, under the names that
// package sinks/opensearch has for them.
type Documents struct{ m *documentMetrics }

// Documents returns hooks for a sink that writes documents.
func (m *Metrics) Documents() Documents { return Documents{&m.documents} }

// Conflict is called when what is there is newer.
func (d Documents) Conflict(r document.Ref) { d.m.conflicts.WithLabelValues(r.Index).Inc() }

// Superseded is called when a later write stands for one.
func (d Documents) Superseded(r document.Ref) { d.m.superseded.WithLabelValues(r.Index).Inc() }

// Retried is called when a write is tried again.
func (d Documents) Retried(e *document.Error) {
	d.m.retried.WithLabelValues(e.Ref.Index, e.Type).Inc()
}

// Rejected is called when a write can never succeed.
func (d Documents) Rejected(e *document.Error) {
	d.m.rejected.WithLabelValues(e.Ref.Index, e.Type).Inc()
}
