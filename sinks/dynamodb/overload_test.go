package dynamodb

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/outcomes"
	"github.com/sluicehq/sluice/item"
)

// Every refusal for load is Overloaded, for every call. No other error is.
func TestOverloaded(t *testing.T) {
	calls := map[string]func(context.Context, *Store) error{
		"Put":      func(ctx context.Context, s *Store) error { return s.Put(ctx, "t", thing("a", "1")) },
		"Write":    func(ctx context.Context, s *Store) error { return s.Write(ctx, dynamo.Put("t", thing("a", "1"))) },
		"Transact": func(ctx context.Context, s *Store) error { return s.Transact(ctx, dynamo.Put("t", thing("a", "1"))) },
		"Once": func(ctx context.Context, s *Store) error {
			_, err := s.Once(ctx, dynamo.Unit{Marker: marker("e"), Ops: []dynamo.Op{dynamo.Put("t", thing("a", "1"))}})
			return err
		},
		"Get": func(ctx context.Context, s *Store) error { _, err := s.Get(ctx, "t", thing("a", "")); return err },
		"Query": func(ctx context.Context, s *Store) error {
			_, err := s.Query(ctx, dynamo.Query{Table: "t", Partition: item.String("p", "1")})
			return err
		},
	}
	for _, tt := range []struct {
		status int
		code   string
		want   bool
	}{
		{400, "ProvisionedThroughputExceededException", true},
		{400, "ThrottlingException", true},
		{400, "RequestLimitExceeded", true},
		{429, "Other", true},
		{400, "AccessDeniedException", false},
		{400, "ResourceNotFoundException", false},
		{400, "ValidationException", false},
		{400, "TransactionConflictException", false},
		{500, "InternalServerError", false},
		{503, "ServiceUnavailable", false},
	} {
		for name, call := range calls {
			synctest.Test(t, func(t *testing.T) {
				s := tablesStub{
					reply: func(int, []string) stubbed { return stubbed{status: tt.status, code: tt.code} },
					other: func(string) (int, string) { return tt.status, refusal(tt.code) },
				}
				err := call(t.Context(), s.store(t, Options{Attempts: 2, Keys: map[string][]string{"t": {"pk"}}}))
				if err == nil || outcomes.IsOverloaded(err) != tt.want || sluice.IsPermanent(err) != (tt.code == "ValidationException") {
					t.Errorf("%s, %d %s: overloaded %v: %v", name, tt.status, tt.code, outcomes.IsOverloaded(err), err)
				}
			})
		}
	}
}

// A write that comes back unprocessed was refused for load; a transaction, when
// one of its reasons says so.
func TestOverloadedInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{reply: func(int, []string) stubbed { return stubbed{back: []string{"t-a"}} }}
		err := s.store(t, Options{Attempts: 2}).Delete(t.Context(), "t", thing("a", ""))
		if !outcomes.IsOverloaded(err) || !errors.Is(err, errUnprocessed) {
			t.Errorf("unprocessed: %v", err)
		}
	})
	for code, want := range map[string]bool{"ThrottlingError": true, "ProvisionedThroughputExceeded": true, "TransactionConflict": false, "ValidationError": false} {
		synctest.Test(t, func(t *testing.T) {
			s := tablesStub{other: func(string) (int, string) { return 400, cancel("None", code) }}
			st := s.store(t, Options{Attempts: 2})
			err := st.Transact(t.Context(), dynamo.Put("t", thing("a", "1")), dynamo.Put("t", thing("b", "1")))
			if err == nil || outcomes.IsOverloaded(err) != want || sluice.IsPermanent(err) != (code == "ValidationError") {
				t.Errorf("Transact, %s: %v", code, err)
			}
			_, err = st.Once(t.Context(), dynamo.Unit{Marker: marker("e"), Ops: []dynamo.Op{dynamo.Put("t", thing("a", "1"))}})
			if err == nil || outcomes.IsOverloaded(err) != want || sluice.IsPermanent(err) != (code == "ValidationError") {
				t.Errorf("Once, %s: %v", code, err)
			}
		})
	}
}
