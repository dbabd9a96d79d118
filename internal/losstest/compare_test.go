//go:build integration

package losstest

import (
	"context"
	"iter"
	"net/http"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/internal/audit"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/snapshot"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

// compare holds that every item has its document, of the same version and body,
// and that there are no others.
func compare(t *testing.T, tab *table, x *index, p *projection.Projection) {
	t.Helper()
	if err := x.client.Call(t.Context(), http.MethodPost, "/"+x.name+"/_refresh", nil, nil); err != nil {
		t.Fatal(err)
	}
	cfg := localtest.DynamoDB(t)
	store, err := dynamodb.New(cfg, dynamodb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	a := audit.Audit{
		Scan: func(ctx context.Context) iter.Seq2[*sluice.Record, error] {
			return snapshot.Scan(ctx, cfg, tab.name, snapshot.ScanOptions{ReadUnits: 1e6})
		},
		Project: p.Project, Read: store.Get, Get: x.client.Get, List: x.client.ListIDs, Indices: []string{x.name},
		Settle: time.Millisecond, // nothing changes any more
		Found: func(d audit.Drift) {
			if found++; found <= 20 {
				t.Error(d)
			}
		},
	}
	r, err := a.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := int64(0)
	for i := range items {
		if !deletes(i, versions) {
			want++
		}
	}
	if !r.Clean() || r.Items != want || r.Listed != want {
		t.Errorf("%+v, want %d items and documents without drift", r, want)
	}
}
