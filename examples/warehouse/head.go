package warehouse

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/dynamo"
	"github.com/sluicehq/sluice/item"
)

// historyLength is how many queued builds a head remembers.
const historyLength = 16

// entry is one queued build.
type entry struct {
	EventID string `dynamodbav:"event_id"`
	Version string `dynamodbav:"version"`
}

// statusHead is what was queued last of a package in an environment.
type statusHead struct {
	Rev      int64   `dynamodbav:"rev"`
	Version  string  `dynamodbav:"version"`
	Previous string  `dynamodbav:"previous_version"`
	History  []entry `dynamodbav:"history"` // by event id, the last ones
}

// with returns the history with e in it, once for its version, under the
// largest event id.
func (h statusHead) with(e entry) []entry {
	history := slices.Clone(h.History)
	if i := slices.IndexFunc(history, func(o entry) bool { return o.Version == e.Version }); i >= 0 {
		if history[i].EventID >= e.EventID {
			return history
		}
		history = slices.Delete(history, i, i+1)
	}
	i, _ := slices.BinarySearchFunc(history, e, func(a, b entry) int { return strings.Compare(a.EventID, b.EventID) })
	history = slices.Insert(history, i, e)
	return history[max(0, len(history)-historyLength):]
}

// enqueue takes a queued build into the head of its package, and tells the
// status of each build in it which version was there before. The history,
// and not the time of arrival, says which that is.
func (w *Warehouse) enqueue(ctx context.Context, e StatusEvent) error {
	k, err := join(e.Package, e.Env)
	if err != nil {
		return err
	}
	for {
		it, err := w.store.Get(ctx, w.table("status_head"), key(k))
		if err != nil {
			return err
		}
		var h statusHead
		if it.Exists() {
			if err := it.Decode(&h); err != nil {
				return sluice.Permanent(fmt.Errorf("head %s: %w", k, err))
			}
		}
		history := h.with(entry{EventID: e.ID, Version: e.Version})
		rev := h.Rev
		if !slices.Equal(history, h.History) {
			rev++
			err := w.store.Write(ctx, headUpdate(w.table("status_head"), k, e, history, it.Exists(), h.Rev))
			if dynamo.IsCondition(err) {
				continue // somebody else's build came first: look again
			}
			if err != nil {
				return err
			}
		}
		return w.tellPrevious(ctx, e, history, rev)
	}
}

func headUpdate(table, k string, e StatusEvent, history []entry, exists bool, rev int64) dynamo.Op {
	last := history[len(history)-1]
	op := dynamo.Update(table, key(k), "SET pkg = :pkg, env = :env, version = :version, rev = :next, history = :history").
		Value(":pkg", e.Package).Value(":env", e.Env).Value(":version", last.Version).
		Value(":next", rev+1).Value(":history", entries(history))
	if len(history) > 1 {
		op.Update += ", previous_version = :previous"
		op = op.Value(":previous", history[len(history)-2].Version)
	}
	if !exists {
		return op.If("attribute_not_exists(#key)").Name("#key", "key")
	}
	return op.If("rev = :rev").Value(":rev", rev)
}

// tellPrevious sets the previous versions of all builds of the history: of e's,
// of the one after it, and, when e's was queued before and has moved, of the one
// that it had stood in front of. Who handles the same event again, after a
// crash, cannot tell which of them are left to do. Several of these run side by
// side; the one with the larger rev wins.
func (w *Warehouse) tellPrevious(ctx context.Context, e StatusEvent, history []entry, rev int64) error {
	for i := 1; i < len(history); i++ {
		k, err := join(e.Package, e.Env, history[i].Version)
		if err != nil {
			return err
		}
		err = unless(w.store.Write(ctx, dynamo.Update(w.table("status"), key(k), "SET previous_version = :previous, head_rev = :rev").
			If("attribute_exists(#key) AND (attribute_not_exists(head_rev) OR head_rev <= :rev)").
			Name("#key", "key").Value(":previous", history[i-1].Version).Value(":rev", rev)))
		if err != nil {
			return err
		}
	}
	return nil
}

// entries is the history as the head holds it.
func entries(history []entry) sluice.Value {
	list := make([]map[string]string, len(history))
	for i, e := range history {
		list[i] = map[string]string{"event_id": e.EventID, "version": e.Version}
	}
	data, _ := json.Marshal(map[string]any{"history": list}) // strings never fail
	it, _ := item.FromJSON(data)
	v, _ := it.Lookup("history")
	return v
}
