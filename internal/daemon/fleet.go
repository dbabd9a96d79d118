package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/holders"
)

// fingerprint identifies the configuration of a daemon: Options.Config and the names of
// its routes.
func fingerprint(o Options, m sluice.Matcher) string {
	h := sha256.New()
	h.Write([]byte(o.Config))
	for _, r := range m.Routes() {
		h.Write([]byte("\x00" + r.Name))
	}
	return hex.EncodeToString(h.Sum(nil)[:4])
}

// compareEvery is the time between two looks at the configurations of other workers.
const compareEvery = 10 * time.Minute

// compareFleet warns, once for each change, if living workers of the application run
// another configuration. It looks again and again until ctx ends, and deletes the reports
// of workers that were killed.
func compareFleet(ctx context.Context, fleet holders.Fleet, application, config string, logger *slog.Logger) {
	told := ""
	for {
		workers, err := fleet.Workers(ctx, application)
		if err == nil {
			configs := make(map[string]bool)
			others := holders.Others(workers, config)
			for _, w := range others {
				configs[w.Config] = true
			}
			found := strings.Join(slices.Sorted(maps.Keys(configs)), ", ")
			if found != "" && found != told {
				logger.Warn("living workers of the application run another configuration: "+holders.Differ,
					"application", application, "config", config, "others", found, "workers", len(others), "worker", others[0].Name)
			}
			told = found
			_ = holders.Sweep(ctx, fleet, application, workers) // or the next time
		}
		if backoff.Sleep(ctx, compareEvery) != nil {
			return
		}
	}
}
