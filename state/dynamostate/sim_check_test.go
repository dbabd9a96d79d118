package dynamostate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

// The properties of a history.
const (
	propLost   = "each change has its effect"
	propOrder  = "changes of an item have effects in their order"
	propAhead  = "no position passes a change without effect"
	propAlone  = "a process handles the changes of an item one after another"
	propFence  = "only the owner of a shard handles its records and stores its position"
	propParent = "a child begins when its parent is settled"
	propRepeat = "without faults nothing is handled twice"
	propHands  = "a reload does not wait for what fails"
	propOwned  = "each shard has a living owner soon after the faults"
	propEven   = "living workers have about equally many shards"
	propRest   = "a fleet at rest moves nothing"
	propStop   = "an orderly stop ends in time"
)

// simEffects is the sink: it keeps of each item the number of its last change.
type simEffects struct {
	done    map[string]map[sluice.Sequence]bool // by shard
	last    map[string]int                      // by item
	repeats int
}

// violate notes that a property does not hold. mu is held.
func (w *simWorld) violate(prop, format string, args ...any) {
	w.violations = append(w.violations, fmt.Sprintf("%s: %s", prop, fmt.Sprintf(format, args...)))
	w.note("VIOLATION: "+prop+": "+format, args...)
}

// process returns the worker of an owner: a name, or what it became after a fence.
func process(owner string) string {
	name, _, _ := strings.Cut(owner, "/")
	return name
}

// write makes a request's write, and looks at it if it is of a shard.
func (w *simWorld) write(by *simWorker, seen rows.Row, set map[string]types.AttributeValue) (rows.Row, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	row, err := w.rows.Write(w.t.Context(), seen, set)
	if err != nil || !strings.HasPrefix(seen.Partition, "shards#") {
		return row, err
	}
	before, errBefore := shardOf(seen)
	after, errAfter := shardOf(row)
	if errBefore != nil || errAfter != nil {
		w.violate(propFence, "a row cannot be read: %v, %v", errBefore, errAfter)
		return row, err
	}
	id := seen.Sort
	w.note("%s writes %s: owner %q epoch %d, %+v ahead %q", by.name, id, after.Owner, after.Epoch, after.Position, after.Position.Ahead)
	if after.Epoch < before.Epoch || after.Position.Compare(before.Position) < 0 {
		w.violate(propFence, "%s goes back from epoch %d and %v to epoch %d and %v", id, before.Epoch, before.Position, after.Epoch, after.Position)
	}
	if after.Position != before.Position {
		if process(before.Owner) != by.name || after.Epoch != before.Epoch {
			w.violate(propFence, "%s moves the position of %s, which %q has", by.name, id, before.Owner)
		}
		w.settledTo(id, after.Position)
		if after.Position.Finished {
			w.finished[id] = after.Epoch
		}
	}
	if after.Epoch > before.Epoch {
		if w.claims[id]++; before.Owner != "" && process(before.Owner) != by.name && w.named(before.Owner) {
			w.violate(propFence, "%s claims %s of %s, which is not fenced", by.name, id, before.Owner)
		}
		// A finished parent may be claimed again, by who has not seen its end: that
		// raises its epoch, and handles nothing.
		if epoch := w.finished[w.parent(id)]; epoch >= after.Epoch {
			w.violate(propFence, "the epoch of %s is %d, and its parent was finished at %d", id, after.Epoch, epoch)
		}
	}
	return row, nil
}

// named reports whether an owner may write heartbeats. mu is held.
func (w *simWorld) named(owner string) bool {
	row, m, err := fetch[storedMember](w.t.Context(), w.rows, memberKey("app", owner))
	return err == nil && row.Exists() && !m.Fenced
}

func (w *simWorld) row(id string) rows.Row {
	row, err := w.rows.Get(w.t.Context(), shardKey(w.stream, id))
	if err != nil {
		w.violate(propFence, "%v", err)
	}
	return row
}

// parent returns the parent of a shard.
func (w *simWorld) parent(id string) string {
	for _, sh := range w.orders.Shards() {
		if sh.ID == id {
			return sh.Parent
		}
	}
	return ""
}

// settledTo looks whether all changes have their effects that a position says. mu is
// held.
func (w *simWorld) settledTo(id string, p state.Position) {
	open, named := sluice.Sequence(""), strings.Fields(p.Ahead)
	if len(named) > 0 {
		open = sluice.Sequence(named[0])
	}
	for _, ch := range w.orders.Changes() {
		settled := p.Finished || ch.Sequence.Compare(sluice.Sequence(p.Sequence)) <= 0 ||
			ch.Sequence.Compare(open) <= 0 && !slices.Contains(named[1:], string(ch.Sequence))
		if ch.ShardID == id && settled && !w.effects.done[id][ch.Sequence] {
			w.violate(propAhead, "%s is settled to %v, ahead %q, and %s has no effect", id, p, p.Ahead, ch.Sequence)
			return
		}
	}
}

// begins looks whether a worker may handle a record, which has been handled when ended is
// called.
func (w *simWorld) begins(by *simWorker, rec *sluice.Record) (ended func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pk, _ := rec.Keys.Lookup("pk")
	item := pk.Str()
	if by.runs[item] {
		w.violate(propAlone, "%s handles %s of %s beside an earlier one", by.name, rec.Sequence, item)
	}
	by.runs[item] = true
	by.handled.Add(1)
	sh, err := shardOf(w.row(rec.ShardID))
	if err != nil || process(sh.Owner) != by.name {
		w.violate(propFence, "%s handles %s of %s, which %q has; %v", by.name, rec.Sequence, rec.ShardID, sh.Owner, err)
	}
	if parent := w.parent(rec.ShardID); parent != "" {
		if p, err := shardOf(w.row(parent)); err != nil || !p.Position.Finished {
			w.violate(propParent, "%s handles %s of %s, whose parent %s is at %v; %v", by.name, rec.Sequence, rec.ShardID, parent, p.Position, err)
		}
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(by.runs, item)
	}
}

// effect is that of a record: number n of its item.
func (w *simWorld) effect(by *simWorker, rec *sluice.Record, item string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	done := w.effects.done[rec.ShardID]
	if done == nil {
		done = make(map[sluice.Sequence]bool)
		w.effects.done[rec.ShardID] = done
	}
	again := done[rec.Sequence]
	done[rec.Sequence] = true
	w.note("%s handles %s %s n=%d of %s, again: %v", by.name, rec.ShardID, rec.Sequence, n, item, again)
	switch last := w.effects.last[item]; {
	case n > last+1:
		w.violate(propOrder, "%s: change %d after %d, of %s at %s", item, n, last, rec.ShardID, by.name)
	case n == last+1:
		w.effects.last[item] = n
	}
	if again {
		if w.effects.repeats++; w.plan.orderly {
			w.violate(propRepeat, "%s of %s at %s", rec.Sequence, rec.ShardID, by.name)
		}
	}
}

// missing counts the changes without effect.
func (w *simWorld) missing() (n int, first string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.orders.Changes() {
		if !w.effects.done[ch.ShardID][ch.Sequence] {
			if n++; n == 1 {
				first = fmt.Sprintf("%s of %s, %v old", ch.Sequence, ch.ShardID, time.Since(ch.Time).Round(time.Second))
			}
		}
	}
	return n, first
}

// unowned returns why the living workers do not have all open shards, or not equally
// many.
func (w *simWorld) unowned(living []*simWorker) (prop, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	have := make(map[string]int)
	for _, l := range living {
		have[l.name] = 0
	}
	all := 0
	for _, info := range w.orders.Shards() {
		sh, err := shardOf(w.row(info.ID))
		switch _, lives := have[process(sh.Owner)]; {
		case err != nil:
			return propOwned, err.Error()
		case !info.Open && !sh.Position.Finished:
			return propOwned, fmt.Sprintf("%s is closed, and not finished: %v", info.ID, sh.Position)
		case !info.Open:
		case !lives || !w.named(sh.Owner): // a process that was fenced must claim it anew
			return propOwned, fmt.Sprintf("%s is of %q", info.ID, sh.Owner)
		default:
			have[process(sh.Owner)]++
			all++
		}
	}
	least, most := all, 0
	for _, n := range have {
		least, most = min(least, n), max(most, n)
	}
	if most-least > max(1, all/len(have)/10) {
		return propEven, fmt.Sprint(have)
	}
	return "", ""
}
