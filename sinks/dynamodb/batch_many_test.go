package dynamodb

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/tally"
)

func hundred() (its []sluice.Item) {
	for i := range 100 {
		its = append(its, thing(fmt.Sprint(i), "x"))
	}
	return its
}

// A table whose key cannot be asked for costs one question, not one an item.
func TestPutAllAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{other: func(string) (int, string) { return hangs, "" }}
		start := time.Now()
		errs := s.store(t, Options{Timeout: 30 * time.Second}).PutAll(t.Context(), "t", hundred())
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("took %v", took)
		}
		for _, err := range errs {
			if err == nil || sluice.IsPermanent(err) {
				t.Error(err)
			}
		}
	})
}

// A meter's panic reaches the caller, from any request, after all requests have ended.
// The next write of a key does not wait.
func TestPutAllAndAMeterThatPanics(t *testing.T) {
	for n := range 4 {
		synctest.Test(t, func(t *testing.T) {
			s := tablesStub{delay: time.Second}
			var commits atomic.Int64
			st := s.store(t, Options{Keys: map[string][]string{"t": {"pk"}}, Metrics: tally.Func(func(name, _ string, _ float64) {
				if name == "sluice_commit_batch_items" && commits.Add(1) == int64(n)+1 {
					panic("on purpose")
				}
			})})
			s.reply = func(n int, _ []string) stubbed { time.Sleep(time.Duration(n) * time.Second); return stubbed{} }
			func() {
				defer func() {
					if p := recover(); !strings.Contains(fmt.Sprint(p), "on purpose") {
						t.Errorf("recovered %v", p)
					}
					if s.running != 0 {
						t.Errorf("%d requests are on their way", s.running)
					}
				}()
				st.PutAll(t.Context(), "t", hundred())
			}()
			if errs := st.PutAll(t.Context(), "t", hundred()); errs != nil {
				t.Error(errs[0])
			}
		})
	}
}

// A meter that ends its goroutine, as t.FailNow does, leaves no write whose
// result is taken for success.
func TestPutAllAndAMeterThatEndsItsGoroutine(t *testing.T) {
	for bad := range 4 {
		synctest.Test(t, func(t *testing.T) {
			s := tablesStub{}
			st := s.store(t, Options{InFlight: 4, Keys: map[string][]string{"t": {"pk"}}, Metrics: tally.Func(func(_, labels string, v float64) {
				if labels == "dynamodb,failed" && v > 0 {
					runtime.Goexit()
				}
			})})
			write := fmt.Sprintf("t+%d=", 25*bad) // the chunk that the caller's goroutine takes is one of the four
			s.reply = func(_ int, writes []string) (a stubbed) {
				if strings.Contains(strings.Join(writes, " "), write) {
					a.code = "ResourceNotFoundException"
				}
				return a
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				if errs := st.PutAll(t.Context(), "t", hundred()); errs == nil || errs[25*bad] == nil {
					t.Error("the write that failed is taken for success")
				}
			})
			wg.Wait()
		})
	}
}
