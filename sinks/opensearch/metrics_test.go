package opensearch

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/tally"
)

// No series has a name that an item has made: its template stands for it.
func TestMetricsShowTemplates(t *testing.T) {
	var counts tally.Tally
	s := newSeries(&counts)
	for _, index := range []string{"orders-a", "orders-b"} {
		op := document.Op{Index: index, IndexTemplate: "orders-{tenant}", ID: "a"}
		ofDocument(s.conflicts, &op)
		ofDocument(s.superseded, &op)
		ofError(s.retried, document.NewError(op, 429, "x", ""))
		ofError(s.rejected, document.NewError(op, 400, "x", ""))
	}
	for name, labels := range map[string]string{
		"sluice_document_conflicts_total": "orders-{tenant}", "sluice_documents_superseded_total": "orders-{tenant}",
		"sluice_document_retries_total": "orders-{tenant},x", "sluice_documents_rejected_total": "orders-{tenant},x",
	} {
		if got := counts.By(name); !maps.Equal(got, map[string]int{labels: 2}) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestMetricsOfRequests(t *testing.T) {
	var counts tally.Tally
	s := newSeries(&counts)
	s.requested(1000, time.Second, nil)
	s.requested(2000, time.Minute, errors.New("connection refused"))
	if got := counts.By("sluice_bulk_requests_total"); !maps.Equal(got, map[string]int{"answered": 1, "failed": 1}) {
		t.Error(got)
	}
	if counts.Sum("sluice_bulk_request_bytes") != 3000 || counts.Sum("sluice_bulk_request_seconds") != 61 {
		t.Error("bytes or seconds")
	}
}
