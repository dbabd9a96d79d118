package dynamodb

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/tally"
)

func budgeted(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := New(aws.Config{Region: "us-east-1"}, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func consumed(table string, n float64) []types.ConsumedCapacity {
	return []types.ConsumedCapacity{{TableName: &table, CapacityUnits: &n}}
}

// The units in the answers keep the rate, for any estimates.
func TestBudgetKeepsTheRate(t *testing.T) {
	for name, estimate := range map[string]float64{"exact": 5, "too low": 1, "too high": 50, "none": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var counts tally.Tally
				s := budgeted(t, Options{Budget: map[string]float64{"t": 10}, Metrics: &counts})
				start := time.Now()
				for range 201 { // 10 are there at once, and 995 flow in at 10 a second
					est := units{"t": estimate}
					if err := s.take(t.Context(), est); err != nil {
						t.Fatal(err)
					}
					s.settle(est, consumed("t", 5))
				}
				if took := time.Since(start).Seconds(); math.Abs(took-99) > 1 {
					t.Errorf("1005 units at 10 a second took %v s", took)
				}
				if told := counts.By("sluice_write_units_total"); told["t"] != 1005 || len(told) != 1 {
					t.Errorf("counted %v", told)
				}
			})
		})
	}
}

// Waiting callers go in the order of their arrival.
func TestBudgetServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := budgeted(t, Options{Budget: map[string]float64{"t": 10}})
		start := time.Now()
		var at []time.Duration
		done := make(chan time.Duration, 5)
		for range 5 {
			go func() {
				if err := s.take(t.Context(), units{"t": 20}); err != nil {
					t.Error(err)
				}
				done <- time.Since(start)
			}()
			synctest.Wait()
		}
		for range 5 {
			at = append(at, (<-done).Round(time.Millisecond))
		}
		for i, want := range []time.Duration{0, time.Second, 3 * time.Second, 5 * time.Second, 7 * time.Second} {
			if at[i] != want {
				t.Errorf("%v", at)
				break
			}
		}
	})
}

func TestBudgetIsOfTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := budgeted(t, Options{Budget: map[string]float64{"t": 10, "arn:aws:dynamodb:us-east-1:1:table/u": 10}})
		start := time.Now()
		take := func(u units) {
			t.Helper()
			if err := s.take(t.Context(), u); err != nil {
				t.Fatal(err)
			}
		}
		take(units{"t": 30})
		take(units{"free": 1e9})
		take(units{"u": 30})
		if time.Since(start) != 0 {
			t.Errorf("waited %v", time.Since(start))
		}
		take(units{"arn:aws:dynamodb:us-east-1:1:table/t": 1, "u": 1})
		if took := time.Since(start); took.Round(time.Millisecond) != 2*time.Second {
			t.Errorf("both were used up for 2 s; waited %v", took)
		}
		time.Sleep(time.Hour) // saves up no more than a second's worth
		take(units{"t": 20})
		start = time.Now()
		take(units{"t": 1})
		if took := time.Since(start); took.Round(time.Millisecond) != time.Second {
			t.Errorf("waited %v after an hour", took)
		}
	})
}

// A rate below one unit a second lets writes through all the same.
func TestBudgetOfLessThanOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := budgeted(t, Options{Budget: map[string]float64{"t": 0.5}})
		start := time.Now()
		for range 11 {
			est := units{"t": 1}
			if err := s.take(t.Context(), est); err != nil {
				t.Fatal(err)
			}
			s.settle(est, consumed("t", 1))
		}
		if took := time.Since(start).Seconds(); math.Abs(took-18) > 2.1 {
			t.Errorf("11 units at 0.5 a second took %v s", took)
		}
	})
}

// A caller that gives up, or gets no answer, takes no units.
func TestBudgetIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := budgeted(t, Options{Budget: map[string]float64{"t": 10, "u": 10}})
		use := func() {
			t.Helper()
			if err := s.take(t.Context(), units{"t": 40}); err != nil {
				t.Fatal(err)
			}
		}
		use() // 3 s to go
		start := time.Now()

		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.take(short, units{"u": 1000, "t": 1000}); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 0 {
			t.Errorf("%v after %v; it was clear at once", err, time.Since(start))
		}
		ended, end := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, end)
		if err := s.take(ended, units{"t": 1000}); !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := s.take(ended, units{"u": 1000}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		est := units{"t": 1000}
		if err := s.take(t.Context(), est); err != nil || time.Since(start).Round(time.Millisecond) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		s.settle(est, nil)
		if err := s.take(t.Context(), units{"t": 1, "u": 1}); err != nil || time.Since(start).Round(time.Millisecond) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		s.settle(nil, []types.ConsumedCapacity{{}, {TableName: aws.String("t")}}) // says nothing
	})
}
