package warehouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
)

// historyLength is how many queued builds a head remembers.
const historyLength = 16

// entry is one queued build.
type entry struct {
	EventID string `dynamodbav:"event_id" json:"event_id"`
	Version string `dynamodbav:"version" json:"version"`
	Total   int64  `dynamodbav:"total" json:"total,omitempty"` // the smallest of its events
}

func (a entry) compare(b entry) int {
	return cmp.Or(compareIDs(a.EventID, b.EventID), strings.Compare(a.Version, b.Version))
}

// statusHead is the last queued version of a package in an environment.
type statusHead struct {
	Rev     int64   `dynamodbav:"rev"`
	History []entry `dynamodbav:"history"` // by event id, the last ones
}

// with returns the history with e in it, once for its version, under the
// largest event id.
func (h statusHead) with(e entry) []entry {
	history := slices.Clone(h.History)
	if i := slices.IndexFunc(history, func(o entry) bool { return o.Version == e.Version }); i >= 0 {
		e.Total = smallestTotal(e.Total, history[i].Total)
		if compareIDs(history[i].EventID, e.EventID) > 0 {
			e.EventID = history[i].EventID
		}
		history = slices.Delete(history, i, i+1)
	}
	i, _ := slices.BinarySearchFunc(history, e, entry.compare)
	history = slices.Insert(history, i, e)
	return history[max(0, len(history)-historyLength):]
}

// check refuses a history whose ids have no order.
func (h statusHead) check() error {
	for _, e := range h.History {
		if _, err := ParseEventID(e.EventID); err != nil {
			return fmt.Errorf("event_id: %w", err)
		}
	}
	return nil
}

// enqueue takes a queued build into the head of its package, and tells the
// status of each build in it which version was there before. The history,
// and not the time of arrival, says which that is. total is that of the build's
// status.
func (w *Warehouse) enqueue(ctx context.Context, e StatusEvent, total int64) error {
	k, err := join(e.Package, e.Env)
	if err != nil {
		return err
	}
	var h statusHead
	var history []entry
	err = w.change(ctx, "status_head", key(k), []string{"key", "rev"}, func(it sluice.Item) (map[string]any, error) {
		h = statusHead{}
		if it.Exists() {
			if err := errors.Join(it.Decode(&h), h.check()); err != nil {
				return nil, sluice.Permanent(fmt.Errorf("the head of the event's package and environment: %w", err))
			}
		}
		history = h.with(entry{EventID: e.ID, Version: e.Version, Total: total})
		fields := headFields(e, history, spanOf(it).with(e.date))
		if it.Exists() && has(it, fields) {
			return nil, nil
		}
		h.Rev++
		fields["rev"] = h.Rev
		return fields, nil
	})
	if err != nil {
		return err
	}
	return w.tellPrevious(ctx, e, history, h.Rev)
}

func headFields(e StatusEvent, history []entry, dates span) map[string]any {
	last := history[len(history)-1]
	fields := map[string]any{"pkg": e.Package, "env": e.Env, "version": last.Version, "previous_version": nil, "total": nil, "history": list(history)}
	if len(history) > 1 {
		fields["previous_version"] = history[len(history)-2].Version
	}
	if last.Total > 0 {
		fields["total"] = last.Total
	}
	dates.fields(fields)
	return fields
}

// tellPrevious sets the previous versions of all builds of the history: of e's, of
// the one after it, and, if e's was queued before and has moved, of the one that
// it preceded. After a crash, the handler of the same event cannot know which of
// them remain. Several calls may run concurrently; the one with the larger rev
// wins.
func (w *Warehouse) tellPrevious(ctx context.Context, e StatusEvent, history []entry, rev int64) error {
	if err := w.forgetPrevious(ctx, e, history, rev); err != nil {
		return err
	}
	for i := 1; i < len(history); i++ {
		err := unless(w.d.Store.Write(ctx, dynamo.Update(w.table("status"), e.statusKey(history[i].Version), "SET previous_version = :previous, head_rev = :rev").
			If("attribute_exists(#key) AND attribute_not_exists(head_rev) OR attribute_exists(#key) AND head_rev <= :rev").
			Name("#key", "key").Value(":previous", history[i-1].Version).Value(":rev", rev)))
		if err != nil {
			return err
		}
	}
	return nil
}

// forgetPrevious takes the previous version off the first build of the history,
// when that version was queued again and stands behind it now.
func (w *Warehouse) forgetPrevious(ctx context.Context, e StatusEvent, history []entry, rev int64) error {
	k := e.statusKey(history[0].Version)
	it, err := w.d.Store.Get(ctx, w.table("status"), k)
	if err != nil {
		return err
	}
	previous := kit.Text(it, "previous_version")
	if !slices.ContainsFunc(history, func(o entry) bool { return o.Version == previous }) {
		return nil
	}
	return unless(w.d.Store.Write(ctx, dynamo.Update(w.table("status"), k, "SET head_rev = :rev REMOVE previous_version").
		If("head_rev <= :rev").Value(":rev", rev)))
}

// statusKey is the key of the status of another version of the event's package.
func (e *StatusEvent) statusKey(version string) sluice.Item {
	return key(e.Package + separator + e.Env + separator + version)
}
