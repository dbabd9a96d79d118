package dynamodb

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A throttled table does not delay others, except writes in the first refused request.
func TestAThrottledTableHoldsUpNoOther(t *testing.T) {
	for name, reply := range map[string]func(writes []string) stubbed{
		"unprocessed": func(writes []string) (a stubbed) {
			for _, w := range writes {
				if strings.HasPrefix(w, "slow-") {
					a.back = append(a.back, w)
				}
			}
			return a
		},
		"refused": func(writes []string) (a stubbed) {
			if strings.HasPrefix(strings.Join(writes, " "), "slow-") {
				a.code = "ProvisionedThroughputExceededException"
			}
			return a
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := tablesStub{reply: func(_ int, writes []string) stubbed { return reply(writes) }}
				st := s.store(t, Options{InFlight: 2, Backoff: time.Second})
				if err := st.Delete(t.Context(), "slow", thing("first", "")); err == nil {
					t.Error("no error")
				}
				var wg sync.WaitGroup
				for i := range 200 {
					table := []string{"slow", "fast"}[i%2]
					wg.Go(func() {
						start := time.Now()
						err := st.Delete(t.Context(), table, thing(fmt.Sprint(i), ""))
						if took := time.Since(start); table == "fast" && (err != nil || took > 100*time.Millisecond) {
							t.Errorf("%v after %v", err, took)
						}
					})
				}
				wg.Wait()
			})
		})
	}
}
