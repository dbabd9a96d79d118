package daemon

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/sluicehq/sluice"
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
		writeJSON(w, open)
	})
}

// acknowledgeGaps responds with the open gaps, and acknowledges them.
func acknowledgeGaps(p gaps, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open := p.Gaps()
		if err := p.AcknowledgeGaps(r.Context(), open...); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		for _, g := range open {
			logger.Info("gap acknowledged", "gap", g.String(), "stream", g.StreamARN, "found", g.Found)
		}
		writeJSON(w, gapsOf(open))
	})
}
