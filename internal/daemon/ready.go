package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/backoff"
)

// readyEvery is the interval at which the log reports whether the daemon is ready.
const readyEvery = 5 * time.Second

// whereToLook is added to why a daemon is not ready while items are held.
func whereToLook(reasons []string, held int) []string {
	if len(reasons) == 0 || held == 0 {
		return reasons
	}
	return append(reasons, fmt.Sprintf("items that wait: %d; sluice status --held lists them, and why", held))
}

// watchReady has the log say what /readyz says, for those who do not ask it:
// that the daemon is not ready, once and again when there are more reasons, and
// that it is ready again. It returns when ctx ends.
func watchReady(ctx context.Context, unready func() []string, logger *slog.Logger) {
	told := 0 // reasons
	for backoff.Sleep(ctx, readyEvery) == nil {
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
