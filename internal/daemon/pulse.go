package daemon

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"time"
)

// deadAfter is the time without a look at the sources after which the process
// counts as deadlocked. A look every readyEvery takes their locks and waits for
// nothing else.
const deadAfter = 24 * readyEvery

// pulse distinguishes a process that needs a restart from one that waits for
// others: only the first stops beating.
type pulse struct {
	logger *slog.Logger

	mu   sync.Mutex
	last time.Time
	told bool
}

func newPulse(logger *slog.Logger) *pulse { return &pulse{logger: logger, last: time.Now()} }

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.told = time.Now(), false
}

// dead returns why the process must be restarted, or "". The first time it logs
// the stacks of all goroutines, because a restart loses them.
func (p *pulse) dead() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	silent := time.Since(p.last)
	if silent <= deadAfter {
		return ""
	}
	if !p.told {
		p.told = true
		stacks := make([]byte, 256<<10)
		stacks = stacks[:runtime.Stack(stacks, true)]
		p.logger.Error("the process seems to be deadlocked: restart it", "silent", silent, "goroutines", string(stacks))
	}
	return fmt.Sprintf("nothing in the process has answered for %v: it seems to be deadlocked, and the log has its goroutines; restart it", silent.Round(time.Second))
}

// Livez answers whether the process is worth keeping. What a restart does not
// mend, such as a sink that is down, is for readyz.
func Livez(application string, dead func() string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(ApplicationHeader, application)
		okUnless(w, dead())
	})
}
