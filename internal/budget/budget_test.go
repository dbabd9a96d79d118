package budget

import (
	"testing"
	"testing/synctest"
	"time"
)

// A caller that waits gets what others give back, and a new rate, at once.
func TestTakeWaitsNoLongerThanItMust(t *testing.T) {
	for name, change := range map[string]func(*Bucket){
		"units come back":  func(b *Bucket) { b.Add(25) },
		"the rate is more": func(b *Bucket) { b.SetRate(1000) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(10)
				begun := time.Now()
				_ = b.Take(t.Context(), 30) // 2 s of the rate are owed
				go func() {
					time.Sleep(100 * time.Millisecond)
					change(b)
				}()
				if err := b.Take(t.Context(), 1); err != nil || time.Since(begun) > 150*time.Millisecond {
					t.Errorf("%v after %v", err, time.Since(begun))
				}
			})
		})
	}
}
