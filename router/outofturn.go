package router

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/routed"
)

// outOfTurn lets the handler of rt check the current item of late records. The
// item may now be of another type, or one that the filters refuse.
func (r *Router) outOfTurn(rt *route, h sluice.Handler) sluice.Handler {
	takes := routed.Takes(func(rec *sluice.Record, now sluice.Item) (bool, error) { return r.takesItem(rt, rec, now) })
	return func(ctx context.Context, rec *sluice.Record) error {
		if routed.Late(rec) {
			ctx = routed.With(ctx, takes)
		}
		return h(ctx, rec)
	}
}

// takesItem reports whether rt takes the current item of rec: one of its patterns
// has the item's type, and its filters pass. The filters see the item as a
// backfill record, or as the new image of rec. The second is for filters that use
// the event or the old image.
func (r *Router) takesItem(rt *route, rec *sluice.Record, now sluice.Item) (bool, error) {
	scanned := *rec
	scanned.EventName, scanned.Old, scanned.New = sluice.Snapshot, sluice.Item{}, now
	typ, err := r.typeOf(nil, &scanned)
	if err != nil {
		return false, fmt.Errorf("%s: type of the item as it is now: %w", where(rec), err)
	}
	named := false
	for _, p := range rt.patterns {
		named = named || p.typ == "" || p.typ == string(typ)
	}
	if !named || rt.takes(&scanned) {
		return named, nil
	}
	if !rec.New.Exists() {
		return false, nil
	}
	changed := *rec
	changed.New = now
	return rt.takes(&changed), nil
}
