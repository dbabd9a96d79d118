package daemon

import (
	"strings"

	"github.com/sluicehq/sluice"
)

const (
	lostSuffix  = ": acknowledge the gap" // of a gap, in the poller's Health
	acknowledge = "sluice gaps acknowledge"
)

// withRepair adds to gaps the commands that repair their loss, to run before the
// gaps are acknowledged.
func withRepair(reasons []string, gaps []sluice.Gap, repairs []string) []string {
	if len(gaps) == 0 {
		return reasons
	}
	for i, r := range reasons {
		reasons[i] = streamARN.ReplaceAllString(strings.TrimSuffix(r, lostSuffix), "$1/stream/$2")
	}
	how := "records are lost: write again what the routes made of them, such as by a backfill, and then acknowledge:"
	if len(repairs) > 0 {
		how = "records are lost: first repair what the routes made of them, then acknowledge:"
	}
	for _, command := range repairs {
		how += "\n    " + command
	}
	return append(reasons, how+"\n    "+acknowledge)
}
