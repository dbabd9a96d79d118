package config

import (
	"log/slog"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/internal/keyhash"
)

// lostLog logs lost changes: one an hour for each reason.
type lostLog struct {
	logger *slog.Logger
	route  string

	mu   sync.Mutex
	last map[projection.Loss]time.Time
}

const lostEvery = time.Hour

var lostReasons = map[projection.Loss]string{
	projection.NotRaised: "a change is not in its document: its version is not above that of the change before it",
	projection.BeganAnew: "an item is not in its document: it was deleted and made again, and its version began anew below that of its deletion",
}

func (l *lostLog) lost(rec *sluice.Record, why projection.Loss) {
	now := time.Now()
	l.mu.Lock()
	last, logged := l.last[why]
	due := !logged || now.Sub(last) >= lostEvery
	if due {
		l.last[why] = now
	}
	l.mu.Unlock()
	if due {
		l.logger.Warn(lostReasons[why], "route", l.route, "table", rec.Table, "key", keyhash.Item(rec.Keys),
			"sequence", string(rec.Sequence), "todo", "run sluice audit; docs/projection.md says which version loses none")
	}
}
