package dynamodb

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/outcomes"
	"github.com/sluicehq/sluice/item"
)

var overloadCalls = map[string]func(context.Context, *Store) error{
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

// Every refusal for load is Overloaded, for every call. No other error is.
func TestOverloaded(t *testing.T) {
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
		for name, call := range overloadCalls {
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

// The time of a call ends during its third try. The refusal for load before that
// counts for every call, and the error has the service's code.
func TestRefusedBeforeTheTimeRanOut(t *testing.T) {
	const throttling = "ThrottlingException"
	for name, call := range overloadCalls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				s := tablesStub{
					reply: func(n int, _ []string) stubbed { return stubbed{code: throttling, hang: n >= 2} },
					other: func(string) (int, string) {
						if tries++; tries > 2 {
							return hangs, ""
						}
						return 400, refusal(throttling)
					},
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				err := call(ctx, s.store(t, Options{Timeout: time.Hour, Attempts: 9, Keys: map[string][]string{"t": {"pk"}}}))
				if !outcomes.IsOverloaded(err) || sluice.IsPermanent(err) || !strings.Contains(err.Error(), throttling) || time.Since(began) != time.Minute {
					t.Errorf("after %v: overloaded %v: %v", time.Since(began), outcomes.IsOverloaded(err), err)
				}
			})
		})
	}
}

// After a refusal for load the service fails, and then the time of the call ends. The
// refusal does not count, since the failure was later. The error has the failure.
func TestFailedBeforeTheTimeRanOut(t *testing.T) {
	for _, name := range []string{"Put", "Write", "Transact", "Once", "Get", "Query"} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			s := tablesStub{
				reply: func(n int, _ []string) stubbed {
					return []stubbed{{code: "ThrottlingException"}, {status: 500, code: "InternalServerError"}, {hang: true}}[n]
				},
				other: func(string) (int, string) {
					switch tries++; tries {
					case 1:
						return 400, refusal("ThrottlingException")
					case 2:
						return 500, refusal("InternalServerError")
					}
					return hangs, ""
				},
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := overloadCalls[name](ctx, s.store(t, Options{Timeout: time.Hour, Attempts: 9, Keys: map[string][]string{"t": {"pk"}}}))
			if err == nil || outcomes.IsOverloaded(err) || !strings.Contains(err.Error(), "InternalServerError") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// The budget is used up after a refusal for load. The refusal counts.
func TestRefusedBeforeTheBudgetRanOut(t *testing.T) {
	for _, name := range []string{"Put", "Write", "Once"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var st *Store
				use := func() { st.budget.of("t").Add(-1e6) }
				s := tablesStub{
					reply: func(int, []string) stubbed { use(); return stubbed{code: "ThrottlingException"} },
					other: func(string) (int, string) { use(); return 400, refusal("ThrottlingException") },
				}
				st = s.store(t, Options{Timeout: time.Minute, Attempts: 9, Keys: map[string][]string{"t": {"pk"}}, Budget: map[string]float64{"t": 10}})
				err := overloadCalls[name](t.Context(), st)
				if !outcomes.IsOverloaded(err) || len(s.requests)+len(s.calls) != 1 {
					t.Errorf("%d requests, %v", len(s.requests)+len(s.calls), err)
				}
			})
		})
	}
}

// The budget is used up for longer than a unit has, until others give units back. The
// unit tries again, and its error tells of the budget once.
func TestOnceAwaitsABudget(t *testing.T) {
	for _, freed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := tablesStub{other: func(string) (int, string) { return 200, "{}" }}
			st := s.store(t, Options{Timeout: time.Hour, Attempts: 1000, Keys: map[string][]string{"t": {"pk"}}, Budget: map[string]float64{"t": 10}})
			st.budget.of("t").Add(-1e6)
			if freed {
				time.AfterFunc(time.Minute, func() { st.budget.of("t").Add(1e6) })
			}
			err := overloadCalls["Once"](t.Context(), st)
			if (err == nil) != freed || !freed && strings.Count(err.Error(), "is used up") != 1 {
				t.Errorf("freed %v: %v", freed, err)
			}
		})
	}
}

// The last try of a transaction may be done, whatever the one before was refused
// for. So its cost stays taken, and a condition that did not hold before is not told.
func TestRefusedBeforeATransactionThatMayBeDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		s := tablesStub{other: func(string) (int, string) {
			if tries++; tries > 1 {
				return hangs, ""
			}
			return 400, cancel("ConditionalCheckFailed", "ThrottlingError")
		}}
		st := s.store(t, Options{Timeout: time.Hour, Attempts: 9, Budget: map[string]float64{"t": 1}})
		ctx, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		err := st.Transact(ctx, dynamo.Put("t", thing("a", "1")).If("attribute_not_exists(pk)"), dynamo.Put("t", thing("b", "1")))
		if !outcomes.IsOverloaded(err) || dynamo.IsCondition(err) || !mayBeDone(err) || !strings.Contains(err.Error(), "TransactionCanceledException") {
			t.Error(err)
		}
		began := time.Now()
		if err := st.budget.of("t").Take(t.Context(), 1); err != nil || time.Since(began) < time.Second {
			t.Errorf("the budget is free after %v, %v", time.Since(began), err)
		}
	})
}

// A request of two writes is refused for the content of one, and the time ends while
// the sink searches for it. No write is blamed.
func TestRefusedForContentBeforeTheTimeRanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{reply: func(n int, _ []string) stubbed { return stubbed{code: "ValidationException", hang: n > 0} }}
		st := s.store(t, Options{Timeout: time.Hour, Keys: map[string][]string{"t": {"pk"}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, err := range st.PutAll(ctx, "t", things("a=1", "b=1")) {
			if err == nil || sluice.IsPermanent(err) {
				t.Error(err)
			}
		}
	})
}

// A person ends a command during its second try. The error says so, not the refusal
// before: the command then says how to go on.
func TestRefusedBeforeItWasCancelled(t *testing.T) {
	for _, name := range []string{"Get", "Query", "Write", "Transact"} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			s := tablesStub{other: func(string) (int, string) {
				if tries++; tries > 1 {
					return hangs, ""
				}
				return 400, refusal("ThrottlingException")
			}}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Minute, cancel)
			if err := overloadCalls[name](ctx, s.store(t, Options{Timeout: time.Hour})); !errors.Is(err, context.Canceled) || outcomes.IsOverloaded(err) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
