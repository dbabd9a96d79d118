package run

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// readyEvery is how often the log is told whether the daemon is ready.
const readyEvery = 10 * time.Second

// watchReady has the log say what /readyz says, for those who do not ask it:
// that the daemon is not ready, once and again when there are more reasons, and
// that it is ready again. It returns when ctx ends.
func watchReady(ctx context.Context, unready func() []string, logger *slog.Logger) {
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	told := 0 // reasons
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		reasons := unready()
		switch {
		case len(reasons) > told:
			logger.Warn("not ready", "reasons", strings.Join(reasons, "\n"))
		case len(reasons) == 0 && told > 0:
			logger.Info("ready again")
		}
		told = len(reasons)
	}
}
