package dynamodb

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/effect/dynamo"
)

const (
	unmetPut = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"no","Item":{"pk":{"S":"a"},"v":{"S":"1"}}}`
	unmetNew = `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","message":"no","CancellationReasons":[{"Code":"ConditionalCheckFailed"}]}`
)

// replies answers calls in turn, the last one for ever.
func replies(answers ...stubAnswer) func(string) (int, string) {
	n := 0
	return func(string) (int, string) {
		a := answers[min(n, len(answers)-1)]
		n++
		return a.status, a.body
	}
}

type stubAnswer struct {
	status int // 0: the answer is lost
	body   string
}

// A server that never answers does not hold a write for ever, and a connection
// that died silently costs a part of the time.
func TestWritesEndInTime(t *testing.T) {
	writes := map[string]func(*Store) error{
		"Write": func(st *Store) error { return st.Write(context.Background(), dynamo.Put("t", thing("a", "1"))) },
		"Transact": func(st *Store) error {
			return st.Transact(context.Background(), dynamo.Put("t", thing("a", "1")))
		},
		"Once": func(st *Store) error {
			_, err := st.Once(context.Background(), dynamo.Unit{Marker: marker("m")})
			return err
		},
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := tablesStub{other: replies(stubAnswer{hangs, ""})}
				st := s.store(t, Options{Timeout: 30 * time.Second})
				start := time.Now()
				if err := write(st); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 31*time.Second {
					t.Errorf("%v after %v", err, time.Since(start))
				}
				s.other = replies(stubAnswer{hangs, ""}, stubAnswer{200, `{}`})
				start = time.Now()
				if err := write(st); err != nil || time.Since(start).Round(time.Second) != 10*time.Second {
					t.Errorf("%v after %v", err, time.Since(start))
				}
			})
		})
	}
}

// Only after a lost answer may the found item be the caller's own write. A conflict
// wrote nothing: the item was there before.
func TestWriteFindsItsOwn(t *testing.T) {
	put := dynamo.Put("t", thing("a", "1")).If("attribute_not_exists(pk)")
	del := dynamo.Delete("t", thing("a", "")).If("attribute_exists(pk)")
	gone := refusal("ConditionalCheckFailedException")
	for _, c := range []struct {
		name  string
		op    dynamo.Op
		first stubAnswer
		then  string
		done  bool
	}{
		{"put, answer lost", put, stubAnswer{0, ""}, unmetPut, true},
		{"put, failure", put, stubAnswer{500, refusal("InternalServerError")}, unmetPut, true},
		{"put, conflict", put, stubAnswer{400, refusal("TransactionConflictException")}, unmetPut, false},
		{"put, throttled", put, stubAnswer{400, refusal("ThrottlingException")}, unmetPut, false},
		{"put, at once", put, stubAnswer{400, unmetPut}, unmetPut, false},
		{"another put", dynamo.Put("t", thing("a", "2")).If("attribute_not_exists(pk)"), stubAnswer{0, ""}, unmetPut, false},
		{"delete, answer lost", del, stubAnswer{0, ""}, gone, true},
		{"delete, conflict", del, stubAnswer{400, refusal("TransactionConflictException")}, gone, false},
		{"delete, of what was changed", del, stubAnswer{0, ""}, unmetPut, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := tablesStub{other: replies(c.first, stubAnswer{400, c.then})}
				err := s.store(t, Options{}).Write(t.Context(), c.op)
				if done := err == nil; done != c.done || !done && !dynamo.IsCondition(err) {
					t.Errorf("%v, want done: %v", err, c.done)
				}
			})
		})
	}
}

// DynamoDB charges for a condition that it has judged, and may charge for a
// write whose answer was lost. The budget counts them.
func TestABudgetCountsWhatNoAnswerTells(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer stubAnswer
		write  func(*Store) error
		took   time.Duration // of 21 writes, at 10 units a second
	}{
		{"condition", stubAnswer{400, unmetPut}, func(st *Store) error {
			return st.Write(context.Background(), dynamo.Put("t", thing("a", "2")).If("attribute_not_exists(pk)"))
		}, time.Second},
		{"transaction", stubAnswer{400, unmetNew}, func(st *Store) error {
			return st.Transact(context.Background(), dynamo.Put("t", thing("a", "2")).If("attribute_not_exists(pk)"))
		}, 3 * time.Second},
		{"lost", stubAnswer{0, ""}, func(st *Store) error {
			return st.Write(context.Background(), dynamo.Put("t", thing("a", "2")))
		}, time.Second},
		{"throttled", stubAnswer{400, refusal("ThrottlingException")}, func(st *Store) error {
			return st.Write(context.Background(), dynamo.Put("t", thing("a", "2")))
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := tablesStub{other: replies(c.answer)}
				st := s.store(t, Options{Attempts: 1, Budget: map[string]float64{"t": 10}})
				start := time.Now()
				for range 21 {
					if err := c.write(st); err == nil {
						t.Error("no error")
					}
				}
				if took := time.Since(start); took.Round(time.Second) != c.took {
					t.Errorf("21 writes took %v, want about %v", took, c.took)
				}
			})
		})
	}
}

// Writes wait for the budget as long as their callers do; their own time begins
// after that.
func TestWritesWaitForABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{other: func(string) (int, string) {
			return 200, `{"ConsumedCapacity":{"TableName":"t","CapacityUnits":100}}`
		}}
		st := s.store(t, Options{Timeout: time.Second, Budget: map[string]float64{"t": 1}})
		start := time.Now()
		for range 2 {
			if err := st.Write(t.Context(), dynamo.Put("t", thing("a", "1"))); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(start).Round(time.Second); took != 99*time.Second {
			t.Errorf("took %v", took)
		}
		if !slices.Equal(s.calls, []string{"PutItem", "PutItem"}) {
			t.Error(s.calls)
		}
	})
}
