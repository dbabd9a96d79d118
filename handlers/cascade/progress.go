package cascade

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/sluicehq/sluice/internal/keyhash"
)

// reason says why a message was sent: a label of the metric, and a word of errors.
type reason string

const (
	handOver reason = "hand-over" // Remove has reached its limit
	proceed  reason = "continue"  // the time for a message was over
	sweep    reason = "sweep"     // nothing is left, for now
)

// Progress is the progress of one record or message.
type Progress struct {
	Table   string // of the children
	Parent  string // dedupeKey of the messages: table and key of the parent
	Deleted int    // rows, so far
	Took    time.Duration
	Rate    float64 // rows per second
	Done    bool    // end of the record or message
}

// report reports the progress at intervals, and at the end with the result ended;
// "" is not the end. The caller holds no lock.
func (p *purge) report(ended string) {
	now, done := time.Now(), ended != ""
	p.mu.Lock()
	if !done && now.Sub(p.reportedAt) < p.t.c.c.Every {
		p.mu.Unlock()
		return
	}
	p.reportedAt = now
	g := Progress{Table: p.t.child.Table, Parent: p.t.dedupeKey(), Deleted: p.deleted, Took: now.Sub(p.began), Done: done}
	failed := p.failures.rows
	p.mu.Unlock()
	if g.Took > 0 {
		g.Rate = float64(g.Deleted) / g.Took.Seconds()
	}
	if p.t.c.c.Progress != nil {
		p.t.c.c.Progress(g)
	}
	level, text := slog.LevelInfo, "cascade continues"
	if done {
		text = "cascade has ended for now"
		if !p.told && g.Took < p.t.c.c.Every { // one of many small cascades
			level = slog.LevelDebug
		}
	}
	args := []any{"table", g.Table, "parent", keyhash.Item(p.t.parent),
		"deleted", g.Deleted, "failed", failed, "took", g.Took, "rate", math.Round(g.Rate*10) / 10}
	if done {
		args = append(args, "ended", ended)
	}
	p.t.c.c.Logger.Log(context.Background(), level, text, args...)
}
