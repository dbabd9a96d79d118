package opensearch

import (
	"testing"

	"github.com/sluicehq/sluice/internal/spantest"
)

func TestSpan(t *testing.T) {
	s := (&cluster{}).sink(t, Options{Linger: -1})
	ctx, spans := spantest.Context(t.Context())
	if err := s.Write(ctx, put("i", "1", "{}")); err != nil {
		t.Fatal(err)
	}
	const want = "opensearch: 1 db.system.name=opensearch db.operation.name=bulk failed=0"
	if got := spans.String(); got != want {
		t.Errorf("span %s, want %s", got, want)
	}
}
