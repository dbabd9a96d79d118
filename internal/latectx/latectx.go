// Package latectx makes contexts that end some time after others: for the last
// writes of a stopping program.
package latectx

import (
	"context"
	"sync"
	"time"
)

// After returns a context that ends d after ctx did. It keeps ctx's values. The
// function that it returns ends it at once and gives back what it takes.
func After(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var mu sync.Mutex
	var timer *time.Timer
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if late.Err() == nil {
			timer = time.AfterFunc(d, cancel)
		}
	})
	return late, func() {
		stop()
		cancel()
		mu.Lock()
		defer mu.Unlock()
		if timer != nil {
			timer.Stop()
		}
	}
}
