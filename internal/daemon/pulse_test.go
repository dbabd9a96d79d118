package daemon

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A process whose parts do not answer any more is dead, and lives again if they
// do. One that is not ready for hours is not dead.
func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		p := newPulse(logger)
		block := make(chan struct{})
		var blocked atomic.Bool
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			watchReady(ctx, func() []string {
				if blocked.Load() {
					<-block
				}
				p.beat()
				return []string{"the sink is down"}
			}, slog.New(slog.DiscardHandler))
		}()
		ask := func(code int, part string) {
			t.Helper()
			w := httptest.NewRecorder()
			Livez("orders", p.dead).ServeHTTP(w, nil)
			if w.Code != code || !strings.Contains(w.Body.String(), part) {
				t.Errorf("livez: %d %q, want %d %q", w.Code, w.Body.String(), code, part)
			}
		}
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		pass(5*time.Hour + time.Second)
		ask(200, "ok")
		blocked.Store(true)
		pass(deadAfter - 2*time.Second)
		ask(200, "ok")
		pass(time.Minute)
		ask(503, "nothing in the process has answered for 2m59s: it seems to be deadlocked")
		ask(503, "restart it")
		if n := strings.Count(log.String(), "deadlocked"); n != 1 || !strings.Contains(log.String(), "TestPulse") {
			t.Errorf("told %d times: %s", n, log.String())
		}
		blocked.Store(false)
		close(block)
		pass(time.Second)
		ask(200, "ok")
		stop()
		<-done
	})
}
