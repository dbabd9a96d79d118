package dynamodb

import (
	"errors"
	"testing"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/spantest"
)

// A commit has one span, and so has each transaction of Once.
func TestSpans(t *testing.T) {
	var s tablesStub
	st := s.store(t, Options{Linger: -1, Keys: map[string][]string{"t": {"pk"}, "u": {"pk"}}})
	ctx, spans := spantest.Context(t.Context())
	if err := errors.Join(st.PutAll(ctx, "t", things("a", "b"))...); err != nil {
		t.Fatal(err)
	}
	const batch = "dynamodb: 2 db.system.name=aws.dynamodb db.operation.name=BatchWriteItem aws.dynamodb.table_names=t failed=0"
	if got := spans.String(); got != batch {
		t.Errorf("span %s, want %s", got, batch)
	}
	ctx, spans = spantest.Context(t.Context())
	a := addTo("a", 1)
	a.Create = true
	if _, err := newService(t, 1, faults{}).store(Options{}).Once(ctx, dynamo.Unit{Marker: marker("m"), Adds: []dynamo.Add{a}}); err != nil {
		t.Fatal(err)
	}
	const once = "dynamodb: 1 db.system.name=aws.dynamodb db.operation.name=TransactWriteItems aws.dynamodb.table_names=markers,counters failed=0"
	if got := spans.String(); got != once {
		t.Errorf("span %s, want %s", got, once)
	}
}
