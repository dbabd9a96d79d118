// Package parallel runs a function with many numbers at a time.
package parallel

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Do calls f with each number below n, up to most at a time, and returns when all
// calls have. It re-raises a panic, such as of a hook, on the caller's goroutine
// after all others have ended.
func Do(n, most int, f func(int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			f(i)
		}
	}
	var wg sync.WaitGroup
	var panicked atomic.Pointer[string]
	defer func() {
		wg.Wait()
		if p := panicked.Load(); p != nil {
			panic(*p)
		}
	}()
	for range min(n, most) - 1 {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					panicked.Store(new(fmt.Sprintf("%v\n%s", p, debug.Stack())))
				}
			}()
			work()
		})
	}
	work()
}
