package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/page"
)

// gaps are the gaps of a poller.
type gaps interface {
	Gaps() []sluice.Gap
	AcknowledgeGaps(ctx context.Context, gaps ...sluice.Gap) error
}

// OpenGaps is the answer of GET /gaps and of POST /gaps/acknowledge.
type OpenGaps struct {
	Gaps   []OpenGap `json:"gaps"`
	Repair []string  `json:"repair,omitempty"` // commands that repair the loss, to run before the gaps are acknowledged
}

// OpenGap is a gap that nobody has acknowledged, or that was just acknowledged.
type OpenGap struct {
	Table string    `json:"table"`
	Found time.Time `json:"found"`
	Lost  string    `json:"lost"` // which records
}

func gapsOf(all []sluice.Gap) OpenGaps {
	o := OpenGaps{Gaps: []OpenGap{}}
	for _, g := range all {
		o.Gaps = append(o.Gaps, OpenGap{g.Table, g.Found, g.String()})
	}
	return o
}

func listGaps(p gaps, repairs []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		open := gapsOf(p.Gaps())
		if len(open.Gaps) > 0 {
			open.Repair = repairs
		}
		page.WriteJSON(w, open)
	})
}

// acknowledgeGaps responds with the open gaps, and acknowledges them.
func acknowledgeGaps(p gaps, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open := p.Gaps()
		if err := acknowledgeAll(r.Context(), p, open, logger); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		page.WriteJSON(w, gapsOf(open))
	})
}

// acknowledgeSome acknowledges the gaps with these ids.
func acknowledgeSome(ctx context.Context, p gaps, ids []string, logger *slog.Logger) error {
	all := slices.DeleteFunc(slices.Clone(p.Gaps()), func(g sluice.Gap) bool { return !slices.Contains(ids, gapID(g)) })
	return acknowledgeAll(ctx, p, all, logger)
}

// gapID is the same for a gap after a restart.
func gapID(g sluice.Gap) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%q", []string{g.StreamARN, g.ShardID, string(g.After), g.Next}))
	return hex.EncodeToString(h[:8])
}

func acknowledgeAll(ctx context.Context, p gaps, all []sluice.Gap, logger *slog.Logger) error {
	if err := p.AcknowledgeGaps(ctx, all...); err != nil {
		return err
	}
	for _, g := range all {
		logger.Info("gap acknowledged", "gap", g.String(), "stream", g.StreamARN, "found", g.Found)
	}
	return nil
}

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
		reasons[i] = shortARNs(strings.TrimSuffix(r, lostSuffix))
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
