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

// Progress is how far one record or message has come.
type Progress struct {
	Table   string // of the children
	Parent  string // the dedupeKey of the messages: table and key of the parent
	Deleted int    // rows, so far
	Took    time.Duration
	Rate    float64 // rows a second
	Done    bool    // this is the end of the record or message
}

// report tells the progress, when it is time to or at the end: ended says how it
// ended, "" that it goes on. The caller holds no lock.
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
	level, text := slog.LevelInfo, "cascade goes on"
	if done {
		text = "cascade has ended for now"
		if !p.told && g.Took < p.t.c.c.Every { // one of many small ones
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
