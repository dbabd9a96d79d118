package dynamodb

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/quorum"
)

// spans is a Tracer: it has the errors of the commits that ended.
type spans struct{ ended []error }

func (s *spans) Commit(ctx context.Context, _ string, _ []context.Context) (context.Context, func([]error)) {
	return ctx, func(errs []error) { s.ended = append(s.ended, errors.Join(errs...)) }
}

// The span of a transaction ends, even if its request panics.
func TestSpanOfAPanic(t *testing.T) {
	service := newService(t, 1, faults{})
	service.answer = func(n int, _ *dynamodb.TransactWriteItemsInput) error {
		if n == 1 {
			panic("on purpose")
		}
		return nil
	}
	var s spans
	m := &quorum.Member{Scope: &quorum.Scope{}, Tracer: &s}
	m.Scope.Enter(1)
	ctx, st := quorum.With(t.Context(), m), service.store(Options{})
	if _, err := st.Once(ctx, dynamo.Unit{Marker: marker("1")}); err == nil {
		t.Error("no error")
	}
	if _, err := st.Once(ctx, dynamo.Unit{Marker: marker("1")}); err != nil {
		t.Error(err)
	}
	if len(s.ended) != 2 || s.ended[0] == nil || !strings.Contains(s.ended[0].Error(), "on purpose") || s.ended[1] != nil {
		t.Errorf("ended %v", s.ended)
	}
}
