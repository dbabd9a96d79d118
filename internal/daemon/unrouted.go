package daemon

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
)

// unrouted sees the records that take no route.
type unrouted struct {
	logger *slog.Logger
	n      atomic.Int64
	told   sync.Map // tables with a reported untyped record
}

// saw reports a table's first record without an entity type. Items of other kinds
// may have none. But if the type is looked for in the wrong place, no record has
// one, and nothing would fail.
func (u *unrouted) saw(rec *sluice.Record, why router.Reason) {
	u.n.Add(1)
	if why != router.Untyped {
		return
	}
	if _, told := u.told.Load(rec.Table); told {
		return
	}
	if _, told := u.told.LoadOrStore(rec.Table, true); !told {
		u.logger.Warn("a record has no entity type and takes no route; similar records are not logged. Is the type looked for in the right place (entityType of the file, router.TypeFrom in Go)?",
			"table", rec.Table, "event", string(rec.EventName), "sequence", string(rec.Sequence))
	}
}
