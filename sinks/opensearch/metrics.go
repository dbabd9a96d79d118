package opensearch

import (
	"time"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/metrics"
)

var (
	conflicts  = metrics.New(metrics.Metric{Name: "sluice_document_conflicts_total", Help: "Writes that found a newer document.", Labels: []string{"index"}})
	superseded = metrics.New(metrics.Metric{Name: "sluice_documents_superseded_total", Help: "Writes of documents replaced within their request.", Labels: []string{"index"}})
	retried    = metrics.New(metrics.Metric{Name: "sluice_document_retries_total", Help: "Retried writes of documents, by error.", Labels: []string{"index", "type"}})
	rejected   = metrics.New(metrics.Metric{Name: "sluice_documents_rejected_total", Help: "Writes of documents that failed for good, by error.", Labels: []string{"index", "type"}})
	requests   = metrics.New(metrics.Metric{Name: "sluice_bulk_requests_total", Help: "Bulk requests: answered, or failed as a whole.", Labels: []string{"outcome"}})
	bulkBytes  = metrics.New(metrics.Metric{Name: "sluice_bulk_request_bytes", Help: "Size of bulk requests.", Buckets: []float64{1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20}})
	bulkTime   = metrics.New(metrics.Metric{Name: "sluice_bulk_request_seconds", Help: "Duration of bulk requests.", Buckets: []float64{.005, .02, .1, .5, 2, 10, 60}})
)

// series are the metrics of one sink.
type series struct {
	conflicts, superseded, retried, rejected, requests, bytes, seconds *metrics.Series
}

func newSeries(m metrics.Meter) series {
	return series{conflicts.Of(m), superseded.Of(m), retried.Of(m), rejected.Of(m), requests.Of(m), bulkBytes.Of(m), bulkTime.Of(m)}
}

// ofDocument counts an operation by its index.
func ofDocument(s *metrics.Series, op *document.Op) { s.Add(1, op.IndexLabel()) }

// ofError counts an error by its index and type.
func ofError(s *metrics.Series, e *document.Error) { s.Add(1, e.IndexLabel(), e.Type) }

// requested counts a request; err is its error as a whole.
func (s series) requested(bytes int, took time.Duration, err error) {
	outcome := "answered"
	if err != nil {
		outcome = "failed"
	}
	s.requests.Add(1, outcome)
	s.bytes.Add(float64(bytes))
	s.seconds.Add(took.Seconds())
}
