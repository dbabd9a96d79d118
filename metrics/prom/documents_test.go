package prom

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

func TestDocuments(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	d := New(reg).Documents()
	h := opensearch.Hooks{Conflict: d.Conflict, Superseded: d.Superseded, Retried: d.Retried, Rejected: d.Rejected}
	ref := document.Ref{Index: "searches", ID: "a"}
	op := &document.Op{Index: "searches", ID: "a"}
	h.Conflict(op)
	h.Conflict(op)
	h.Superseded(op)
	h.Retried(&document.Error{Ref: ref, Type: "es_rejected_execution_exception"})
	h.Retried(&document.Error{Ref: ref})
	h.Rejected(&document.Error{Ref: ref, Type: "mapper_parsing_exception"})
	expectSeries(t, reg, `
# HELP sluice_document_conflicts_total Writes that found a newer document.
# TYPE sluice_document_conflicts_total counter
sluice_document_conflicts_total{index="searches"} 2
# HELP sluice_document_retries_total Writes of documents that were tried again, by error.
# TYPE sluice_document_retries_total counter
sluice_document_retries_total{index="searches",type=""} 1
sluice_document_retries_total{index="searches",type="es_rejected_execution_exception"} 1
# HELP sluice_documents_rejected_total Writes of documents that can never succeed, by error.
# TYPE sluice_documents_rejected_total counter
sluice_documents_rejected_total{index="searches",type="mapper_parsing_exception"} 1
# HELP sluice_documents_superseded_total Writes of documents replaced within their request.
# TYPE sluice_documents_superseded_total counter
sluice_documents_superseded_total{index="searches"} 1
`, "sluice_document_conflicts_total", "sluice_document_retries_total", "sluice_documents_rejected_total", "sluice_documents_superseded_total")
}

// No series has a name that an item has made: its template stands for it.
func TestDocumentsShowTemplates(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	d := New(reg).Documents()
	for _, index := range []string{"orders-a", "orders-b"} {
		op := document.Op{Index: index, IndexTemplate: "orders-{tenant}", ID: "a"}
		d.Conflict(&op)
		d.Superseded(&op)
		d.Retried(document.NewError(op, 429, "x", ""))
		d.Rejected(document.NewError(op, 400, "x", ""))
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if strings.HasPrefix(l.GetValue(), "orders") {
					n++
					if l.GetName() != "index" || l.GetValue() != "orders-{tenant}" || m.GetCounter().GetValue() != 2 {
						t.Errorf("%s: %v", f.GetName(), m)
					}
				}
			}
		}
	}
	if n != 4 {
		t.Errorf("%d series, want 4", n)
	}
}

func TestBulkRequests(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	d := New(reg).Documents()
	d.Requested(1000, time.Second, nil)
	d.Requested(2000, time.Second, nil)
	d.Requested(3000, time.Minute, errors.New("connection refused"))
	expectSeries(t, reg, `
# HELP sluice_bulk_requests_total Bulk requests: answered, or failed as a whole.
# TYPE sluice_bulk_requests_total counter
sluice_bulk_requests_total{outcome="answered"} 2
sluice_bulk_requests_total{outcome="failed"} 1
`, "sluice_bulk_requests_total")
	for _, name := range []string{"sluice_bulk_request_bytes", "sluice_bulk_request_seconds"} {
		if got := samples(t, reg, name); got[""] != 3 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
