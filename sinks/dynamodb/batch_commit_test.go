package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/tally"
)

// The caller of a failed write gets its error. The sink retries only writes that may
// succeed.
func TestRequestsThatFail(t *testing.T) {
	const permanent, plain = "permanent", "plain"
	refuseOf := func(part, code string) func(int, []string) stubbed {
		return func(_ int, w []string) stubbed {
			if slices.ContainsFunc(w, func(w string) bool { return strings.Contains(w, part) }) {
				return stubbed{code: code}
			}
			return stubbed{}
		}
	}
	in := func(answers ...stubbed) func(int, []string) stubbed {
		return func(n int, _ []string) stubbed { return answers[min(n, len(answers)-1)] }
	}
	ok := stubbed{}
	for _, c := range []struct {
		name     string
		writes   string // default a b c d of table t
		reply    func(n int, writes []string) stubbed
		requests []string // nil: not looked at
		result   map[string]string
		says     string
	}{
		{name: "what comes back is written again", reply: in(stubbed{back: []string{"t+b=1", "t-d"}}, stubbed{back: []string{"t-d"}}, ok),
			writes: "t+a=1 t+b=1 t-c t-d", requests: []string{"t+a=1 t+b=1 t-c t-d", "t+b=1 t-d", "t-d"}},
		{name: "what always comes back has failed", reply: in(stubbed{back: []string{"t-b"}}),
			requests: []string{"t-a t-b t-c t-d", "t-b", "t-b"}, result: map[string]string{"t-b": plain}, says: "unprocessed: the table, or one of its partitions, has not the throughput (after 3 attempts in one commit)"},
		{name: "of several tables", writes: "t+a=1 t+b=1 u+a=1 u+c=1", reply: in(stubbed{back: []string{"u+a=1", "t+b=1"}}, ok),
			requests: []string{"t+a=1 t+b=1 u+a=1 u+c=1", "t+b=1 u+a=1"}},
		{name: "no UnprocessedItems", reply: in(stubbed{raw: `{}`}), requests: []string{"t-a t-b t-c t-d"}},
		{name: "null", reply: in(stubbed{raw: `{"UnprocessedItems":null,"ConsumedCapacity":null}`}), requests: []string{"t-a t-b t-c t-d"}},
		{name: "no list of a table", reply: in(stubbed{raw: `{"UnprocessedItems":{"t":null}}`}), requests: []string{"t-a t-b t-c t-d"}},
		{name: "something else comes back", writes: "t-a t-b u-c", reply: in(stubbed{raw: `{"UnprocessedItems":{"t":[{"DeleteRequest":{"Key":{"pk":{"S":"x"}}}}]}}`}, ok),
			requests: []string{"t-a t-b u-c", "t-a t-b"}},
		{name: "an empty request comes back", reply: in(stubbed{raw: `{"UnprocessedItems":{"t":[{}]}}`}, ok), requests: []string{"t-a t-b t-c t-d", "t-a t-b t-c t-d"}},
		{name: "the request is throttled", reply: in(stubbed{code: "ProvisionedThroughputExceededException"}, stubbed{code: "ThrottlingException"}, ok),
			requests: []string{"t-a t-b t-c t-d", "t-a t-b t-c t-d", "t-a t-b t-c t-d"}},
		{name: "the service fails", reply: in(stubbed{status: 500, code: "InternalServerError"}, stubbed{status: 503, code: ""}, ok),
			requests: []string{"t-a t-b t-c t-d", "t-a t-b t-c t-d", "t-a t-b t-c t-d"}},
		{name: "the answer is lost", reply: in(stubbed{lost: true}, ok), requests: []string{"t-a t-b t-c t-d", "t-a t-b t-c t-d"}},
		{name: "the service fails for ever", writes: "t-a t-b", reply: in(stubbed{status: 500, code: "InternalServerError"}),
			requests: []string{"t-a t-b", "t-a t-b", "t-a t-b"}, result: map[string]string{"t-a": plain, "t-b": plain}, says: "InternalServerError"},
		{name: "one write is invalid", writes: "t-a t-b t-c t-d t-e t-f t-g", reply: refuseOf("-e", "ValidationException"),
			result: map[string]string{"t-e": permanent}, says: "ValidationException"},
		{name: "two are", writes: "t-a t-b t-c t-d t-e t-f t-g", reply: func(_ int, w []string) stubbed {
			if slices.Contains(w, "t-a") || slices.Contains(w, "t-g") {
				return stubbed{code: "ValidationException"}
			}
			return ok
		}, result: map[string]string{"t-a": permanent, "t-g": permanent}},
		{name: "a request of too many bytes", writes: "t-a t-b t-c t-d", reply: func(_ int, w []string) stubbed {
			if len(w) > 2 {
				return stubbed{status: 413, code: "RequestEntityTooLarge"}
			}
			return ok
		}},
		{name: "a full partition", reply: refuseOf("-c", "ItemCollectionSizeLimitExceededException"), result: map[string]string{"t-c": plain}, says: "10 GB"},
		{name: "no such table", writes: "t-a u-b t-c v-d", reply: refuseOf("u-", "ResourceNotFoundException"),
			requests: []string{"t-a t-c u-b v-d", "t-a t-c", "u-b", "v-d"}, result: map[string]string{"u-b": plain}, says: `table "u": BatchWriteItem at AWS in region us-east-1: there is no such table`},
		{name: "no permission", reply: refuseOf("t", "AccessDeniedException"),
			requests: []string{"t-a t-b t-c t-d"}, result: map[string]string{"t-a": plain, "t-b": plain, "t-c": plain, "t-d": plain}, says: "dynamodb:BatchWriteItem"},
		{name: "invalid, and throttled meanwhile", writes: "t-a t-b t-c t-d", reply: func(n int, w []string) stubbed {
			switch {
			case slices.Contains(w, "t-a"):
				return stubbed{code: "ValidationException"}
			case slices.Equal(w, []string{"t-c", "t-d"}) && n < 6:
				return stubbed{code: "ThrottlingException"}
			}
			return ok
		}, result: map[string]string{"t-a": permanent}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := tablesStub{reply: c.reply}
				st := s.store(t, Options{Attempts: 3, Keys: map[string][]string{"t": {"pk"}, "u": {"pk"}, "v": {"pk"}}})
				if c.writes == "" {
					c.writes = "t-a t-b t-c t-d"
				}
				var mu sync.Mutex
				errs := map[string]error{}
				var wg sync.WaitGroup
				for _, w := range strings.Fields(c.writes) {
					wg.Go(func() {
						pk, v, put := strings.Cut(w[2:], "=")
						err := error(nil)
						if put {
							err = st.Put(t.Context(), w[:1], thing(pk, v))
						} else {
							err = st.Delete(t.Context(), w[:1], thing(pk, ""))
						}
						mu.Lock()
						defer mu.Unlock()
						errs[w] = err
					})
					synctest.Wait()
				}
				wg.Wait()
				if c.requests != nil {
					s.expect(t, c.requests...)
				}
				for w, err := range errs {
					kind := ""
					if err != nil {
						kind = plain
						if sluice.IsPermanent(err) {
							kind = permanent
						}
						if !strings.Contains(err.Error(), c.says) || strings.Count(err.Error(), "dynamodb: ") != 1 || !strings.Contains(err.Error(), fmt.Sprintf("table %q", w[:1])) {
							t.Errorf("%s: %v", w, err)
						}
					}
					if kind != c.result[w] {
						t.Errorf("%s: %v, want %q", w, err, c.result[w])
					}
				}
			})
		})
	}
}

// Good writes get through at once, however many bad ones there are.
func TestTheBadOnesAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{reply: func(_ int, w []string) stubbed {
			if slices.ContainsFunc(w, func(w string) bool { return strings.Contains(w, "bad") }) {
				return stubbed{code: "ValidationException"}
			}
			return stubbed{}
		}}
		st := s.store(t, Options{})
		var its []sluice.Item
		for i := range 100 {
			name := "good"
			if i%9 == 0 {
				name = "bad"
			}
			its = append(its, thing(fmt.Sprint(name, i), "x"))
		}
		start := time.Now()
		for i, err := range st.PutAll(t.Context(), "t", its) {
			if sluice.IsPermanent(err) != (i%9 == 0) || err != nil && i%9 != 0 {
				t.Errorf("%d: %v", i, err)
			}
		}
		if len(s.items) != 88 || time.Since(start) != 0 {
			t.Errorf("%d items after %v", len(s.items), time.Since(start))
		}
	})
}

// Backoff grows, and the commit ends in time.
func TestACommitEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{reply: func(int, []string) stubbed { return stubbed{code: "ThrottlingException"} }}
		st := s.store(t, Options{Attempts: 1 << 20, Timeout: time.Minute})
		start := time.Now()
		err := st.Delete(t.Context(), "t", thing("a", ""))
		if took := time.Since(start); err == nil || sluice.IsPermanent(err) || took > time.Minute || took < 5*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		if n := len(s.requests); n < 5 || n > 60 {
			t.Errorf("%d requests in a minute", n)
		}
		s.reply = func(int, []string) stubbed { return stubbed{hang: true} }
		if err := st.Delete(t.Context(), "t", thing("a", "")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// The consumed units in the answers keep writes at the budget's rate. Writes of other
// tables do not wait.
func TestWritesKeepTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{delay: time.Millisecond, units: func(table, _ string) float64 { return map[string]float64{"slow": 3, "free": 1}[table] }}
		var counts tally.Tally
		st := s.store(t, Options{Budget: map[string]float64{"slow": 100}, Metrics: &counts})
		var keys []sluice.Item
		for i := range 2000 {
			keys = append(keys, thing(fmt.Sprint(i), ""))
		}
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			if errs := st.DeleteAll(t.Context(), "slow", keys); errs != nil {
				t.Error(errs[0])
			}
			if took := time.Since(start).Seconds(); math.Abs(took-59) > 12 {
				t.Errorf("6000 units at 100 a second took %v s", took)
			}
		})
		synctest.Wait()
		if errs := st.DeleteAll(t.Context(), "free", keys); errs != nil || time.Since(start) > 100*time.Millisecond {
			t.Errorf("a table without a budget took %v", time.Since(start))
		}
		wg.Wait()
		if told := counts.By("sluice_write_units_total"); told["slow"] != 6000 || told["free"] != 2000 {
			t.Error(told)
		}
	})
}

// Waiting for a budget ends with the caller, and is not the time of the commit.
func TestWaitingForABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{units: func(string, string) float64 { return 100 }}
		st := s.store(t, Options{Budget: map[string]float64{"t": 1}, Timeout: time.Second})
		if err := st.Delete(t.Context(), "t", thing("a", "")); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := st.Delete(ctx, "t", thing("a", "")); !errors.Is(err, context.DeadlineExceeded) || sluice.IsPermanent(err) || !strings.Contains(err.Error(), "budget of 1 write units") {
			t.Error(err)
		}
		if err := st.Delete(t.Context(), "t", thing("a", "")); err != nil || time.Since(start).Round(time.Second) != 99*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// A connection that died silently costs a part of the time.
func TestARequestWithoutAnAnswerIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{reply: func(n int, _ []string) stubbed { return stubbed{hang: n == 0} }}
		fails := 0
		s.other = func(string) (int, string) {
			if fails++; fails == 1 {
				return hangs, ""
			}
			return 200, `{}`
		}
		st := s.store(t, Options{Timeout: 30 * time.Second})
		start := time.Now()
		if err := st.Delete(t.Context(), "t", thing("a", "")); err != nil || time.Since(start).Round(time.Second) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		start = time.Now()
		if _, err := st.Get(t.Context(), "t", thing("a", "")); err != nil || time.Since(start).Round(time.Second) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// A commit that had to wait for its budget ends in time, too.
func TestACommitWithABudgetEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{reply: func(int, []string) stubbed { return stubbed{hang: true} }}
		st := s.store(t, Options{Attempts: 1 << 20, Budget: map[string]float64{"t": 1}, Timeout: time.Second})
		if err := st.Delete(t.Context(), "t", thing("a", "")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// Concurrent Puts ask for a table's key once. An error is not cached. A caller that
// gives up does not end the others.
func TestTheKeyIsAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{delay: time.Second}
		st := s.store(t, Options{Attempts: 1})
		put := func(ctx context.Context, n int) (failed []error) {
			var mu sync.Mutex
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					if err := st.Put(ctx, "t", thing(fmt.Sprint(i), "x")); err != nil {
						mu.Lock()
						defer mu.Unlock()
						failed = append(failed, err)
					}
				})
			}
			wg.Wait()
			return failed
		}
		answer := func(status int, code string) { s.other = func(string) (int, string) { return status, refusal(code) } }
		answer(400, "AccessDeniedException")
		if errs := put(t.Context(), 10); len(errs) != 10 || len(s.calls) != 1 || sluice.IsPermanent(errs[0]) ||
			!strings.Contains(errs[0].Error(), "dynamodb:DescribeTable") || !strings.Contains(errs[0].Error(), "Options.Keys") {
			t.Errorf("%d calls: %v", len(s.calls), errs)
		}
		s.other = nil
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		done := make(chan []error)
		go func() { done <- put(ctx, 1) }()
		synctest.Wait()
		if errs := put(t.Context(), 10); errs != nil || len(s.calls) != 2 {
			t.Errorf("%d calls: %v", len(s.calls), errs)
		}
		if errs := <-done; len(errs) != 1 || sluice.IsPermanent(errs[0]) {
			t.Error(errs)
		}
		if errs := put(t.Context(), 3); errs != nil || len(s.calls) != 2 {
			t.Errorf("%d calls: %v", len(s.calls), errs)
		}
		if err := st.Delete(t.Context(), "unknown", thing("a", "")); err != nil || len(s.calls) != 2 {
			t.Errorf("a Delete knows its key: %v", err)
		}
	})
}
