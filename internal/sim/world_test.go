package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/streamtest"
)

const (
	maxShards  = 10 // of a table
	burstItems = 150
)

// table is one of the service, and what the director knows of it.
type table struct {
	*streamtest.Table
	name   string
	items  int
	ns     map[string]int  // writes so far, by item
	wrote  map[string]int  // the n of a change, by stream ARN and sequence number
	told   int             // changes that the checker knows
	denied map[string]bool // shards that were, or were hidden

	mu    sync.Mutex
	arns  []string            // of its streams, the oldest first
	ended map[place]time.Time // when shards of streams that were disabled were closed
}

func (h *history) create(tp tablePlan) {
	t := &table{name: tp.name, items: tp.items, ns: map[string]int{}, wrote: map[string]int{}, denied: map[string]bool{},
		Table: h.service.CreateTable(tp.name, streamtest.TableOptions{Shards: tp.shards, OpaqueShardIDs: h.plan.trims()})}
	t.ended = map[place]time.Time{}
	t.arns = []string{t.StreamARN()}
	h.tables = append(h.tables, t)
	h.look(t)
}

// look tells the checker of all shards of a table.
func (h *history) look(t *table) {
	arn := t.StreamARN()
	for _, s := range t.Shards() {
		h.check.topology(place{arn, s.ID}, s.Parent, !s.Open)
	}
}

func (h *history) of(arn string) *table {
	for _, t := range h.tables {
		if slices.Contains(t.streams(), arn) {
			return t
		}
	}
	return nil
}

// streams returns the ARNs of the table's streams, the oldest first.
func (t *table) streams() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.arns
}

// older returns the streams that a table had before the one of arn.
func (h *history) older(arn string) []string {
	all := h.of(arn).streams()
	return all[:slices.Index(all, arn)]
}

// toggle disables the stream of a table, or gives it a new one.
func (h *history) toggle(t *table) {
	if !t.enabled() {
		h.enable(t)
		return
	}
	arn := t.StreamARN()
	h.trace.add(0, "the stream %s is disabled", arn)
	h.look(t)
	t.mu.Lock()
	for _, s := range t.Shards() {
		if s.Open {
			t.ended[place{arn, s.ID}] = time.Now()
		}
	}
	t.mu.Unlock()
	t.DisableStream()
	h.look(t)
}

func (h *history) enable(t *table) {
	if t.enabled() {
		return
	}
	arn := t.EnableStream("")
	h.trace.add(0, "the stream %s is enabled", arn)
	t.mu.Lock()
	t.arns = append(slices.Clone(t.arns), arn)
	t.mu.Unlock()
	h.look(t)
}

// enabled reports whether the latest stream is: an enabled one always has an
// open shard.
func (t *table) enabled() bool {
	return slices.ContainsFunc(t.Shards(), func(s streamtest.ShardInfo) bool { return s.Open })
}

// news returns the changes that the checker does not know yet.
func (h *history) news() (fresh []news) {
	for _, t := range h.tables {
		all := t.Changes()
		for _, ch := range all[t.told:] {
			v, _ := ch.Keys.Lookup("pk")
			fresh = append(fresh, news{place: place{ch.StreamARN, ch.ShardID}, seq: ch.Sequence, item: t.name + "/" + v.Str(), at: ch.Time})
		}
		t.told = len(all)
	}
	return fresh
}

// trimmed returns which records of a shard nobody can read any more.
func (h *history) trimmed(p place) func(sluice.Sequence) bool {
	gone := map[sluice.Sequence]bool{}
	if t := h.of(p.arn); t != nil {
		for _, ch := range t.Changes() {
			if ch.StreamARN == p.arn && ch.ShardID == p.id && ch.Trimmed {
				gone[ch.Sequence] = true
			}
		}
	}
	return func(s sluice.Sequence) bool { return gone[s] }
}

// listed reports whether the service has a shard: until all its records are
// trimmed.
func (h *history) listed(p place) bool {
	t := h.of(p.arn)
	if p.arn == t.StreamARN() {
		return slices.ContainsFunc(t.Shards(), func(s streamtest.ShardInfo) bool { return s.ID == p.id })
	}
	any := false
	for _, ch := range t.Changes() {
		if ch.StreamARN == p.arn && ch.ShardID == p.id {
			if any = true; !ch.Trimmed {
				return true
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.ended[p]
	return !any && ok && time.Since(at) < h.plan.limits.Retention
}

// content looks whether a record holds what was written.
func (h *history) content(rec *sluice.Record, ch *change) {
	if ch == nil {
		return
	}
	t := h.of(rec.StreamARN)
	h.mu.Lock()
	want, ok := t.wrote[rec.StreamARN+" "+string(rec.Sequence)]
	h.mu.Unlock()
	image := rec.New
	if rec.EventName == sluice.Remove {
		image = rec.Old
	}
	v, _ := image.Lookup("n")
	if ok && v.Str() != fmt.Sprint(want) {
		h.check.violate(propContent, "the record of %v says n=%s, written was n=%d", ch, v.Str(), want)
	}
}

// do lets an event happen.
func (h *history) do(e event) {
	t := h.tables[e.table]
	switch e.do {
	case write:
		for i := range 1 + e.n>>8%6 {
			h.write(t, e.n+i*(e.n>>4&1))
		}
	case split, roll:
		h.reshard(t, e.do == split, e.n)
	case hide:
		h.hide(t, e.n)
	case deny:
		h.deny(t, e.n)
	case trim:
		h.trim(t, e.n)
	case outage:
		route := routeNames[e.n%h.plan.routes]
		h.trace.add(0, "route %s is down", route)
		h.sinks[route].down(time.Duration(1+e.n>>8%8) * time.Second)
	case partial:
		route, share := routeNames[e.n%h.plan.routes], 2+e.n>>4%4
		h.trace.add(0, "route %s fails for 1 item in %d for %v", route, share, e.lasts)
		h.sinks[route].failsSome(e.lasts, func(item string) bool {
			return h.draw.below(share, "partial", text(item), uint64(e.n)) == 0
		})
	case capacity:
		route, room, says := routeNames[e.n%h.plan.routes], 1+e.n>>4%4, e.n>>8%2 == 0
		h.trace.add(0, "route %s refuses calls above %d for %v, and says why: %v", route, room, e.lasts, says)
		h.sinks[route].fills(e.lasts, room, 50*time.Millisecond, says)
	case burst:
		for i := range 1500 {
			h.put(t, fmt.Sprint("b", i%burstItems))
		}
	case silence:
		h.trace.add(0, "no record of %s can be read for %v", t.name, e.lasts)
		remove := h.service.Fail(streamtest.Fault{Op: "GetRecords", Table: t.name, Error: "InternalServerError"})
		h.faults = append(h.faults, remove)
		time.AfterFunc(e.lasts, remove)
	case storeOutage:
		h.trace.add(0, "the store is full")
		h.mu.Lock()
		h.storeUntil = time.Now().Add(e.lasts)
		h.mu.Unlock()
	case toggle:
		h.toggle(t)
	}
}

// write makes one change.
func (h *history) write(t *table, n int) {
	pk := fmt.Sprint("i", n%t.items)
	last := t.ns[pk]
	var seq sluice.Sequence
	key := map[string]any{"pk": pk}
	what := "put"
	switch x := n >> 16 % 12; {
	case x == 0:
		what, seq = "delete", t.Delete(key)
	case x == 1:
		what, seq = "expire", t.Expire(key)
	default:
		last++
		t.ns[pk] = last
		item := map[string]any{"pk": pk, "n": last}
		if h.plan.big {
			item["pad"] = strings.Repeat("x", 50_000+n>>4%4*50_000)
		}
		seq = t.Put(item)
	}
	if seq != "" { // else there was nothing to delete
		h.wrote(t, what, pk, seq)
	}
}

// put writes an item anew.
func (h *history) put(t *table, pk string) {
	t.ns[pk]++
	h.wrote(t, "put", pk, t.Put(map[string]any{"pk": pk, "n": t.ns[pk]}))
}

func (h *history) wrote(t *table, what, pk string, seq sluice.Sequence) {
	n := t.ns[pk]
	h.trace.add(0, "%s %s/%s n=%d: %s", what, t.name, pk, n, seq)
	h.mu.Lock()
	defer h.mu.Unlock()
	t.wrote[t.StreamARN()+" "+string(seq)] = n
}

// reshard splits or rolls an open shard.
func (h *history) reshard(t *table, split bool, n int) {
	var open []string
	for _, s := range t.Shards() {
		if s.Open {
			open = append(open, s.ID)
		}
	}
	if len(open) == 0 || split && len(open) >= maxShards {
		return
	}
	id := open[n%len(open)]
	h.check.closed(place{t.StreamARN(), id}) // first: a poller may read to its end at the same instant
	if split {
		left, right := t.Split(id)
		h.trace.add(0, "%s splits into %s and %s", id, left, right)
	} else {
		h.trace.add(0, "%s is followed by %s", id, t.Roll(id))
	}
	t.mu.Lock()
	t.ended[place{t.StreamARN(), id}] = time.Now()
	t.mu.Unlock()
	h.look(t)
}

// hide has listings leave a shard out: fewer in a row than it takes to make the
// poller believe them.
func (h *history) hide(t *table, n int) {
	shards := t.Shards()
	if len(shards) == 0 {
		return
	}
	id := shards[n%len(shards)].ID
	if t.denied[id] {
		return
	}
	t.denied[id] = true
	h.check.denies(place{t.StreamARN(), id})
	h.trace.add(0, "%d listings leave %s out", 1+n>>8%2, id)
	t.Hide(id, 1+n>>8%2)
}

// deny has the service say for a few calls that it knows no such shard, or once
// that what is asked for is trimmed, and one listing leave the shard out: a poller
// that believes that loses it.
func (h *history) deny(t *table, n int) {
	shards := t.Shards()
	if len(shards) == 0 {
		return
	}
	id := shards[n%len(shards)].ID
	if t.denied[id] {
		return
	}
	t.denied[id] = true
	h.check.denies(place{t.StreamARN(), id})
	refusal, times := "ResourceNotFoundException", 1+n>>8%3
	if n>>12%3 == 0 {
		refusal, times = "TrimmedDataAccessException", 1
	}
	h.trace.add(0, "%d calls for %s are answered by %s, and one listing leaves it out", times, id, refusal)
	for _, op := range []string{"GetRecords", "GetShardIterator"} {
		h.faults = append(h.faults, h.service.Fail(streamtest.Fault{Op: op, Table: t.name, Shard: id, Error: refusal, Times: times}))
	}
	t.Hide(id, 1)
}

// trim drops the oldest records of a shard, as if they were a day old.
func (h *history) trim(t *table, n int) {
	shards := t.Shards()
	if len(shards) == 0 || !h.plan.trims() {
		return
	}
	s := shards[n%len(shards)]
	if h.check.position(place{t.StreamARN(), s.ID}).Sequence == "" {
		return
	}
	left := 0
	for _, ch := range t.Changes() {
		if ch.ShardID == s.ID && !ch.Trimmed {
			left++
		}
	}
	left = min(left, 1+n>>8%4)
	h.trace.add(0, "%d records of %s are trimmed", left, s.ID)
	t.Trim(s.ID, left)
}

// sleepLong lets hours pass in which nobody reads.
func (h *history) sleepLong(d time.Duration) {
	h.trace.add(0, "%v pass", d)
	const steps = 4
	for i := range steps {
		time.Sleep(d / steps)
		n := h.draw.below(1<<30, "long", uint64(h.skipped), uint64(i))
		t := h.tables[n%len(h.tables)]
		if n>>4%3 == 0 {
			h.reshard(t, n>>5%2 == 0, n>>8)
		}
		for j := range n >> 6 % 4 {
			h.write(t, n+j)
		}
	}
	h.skipped += d / steps * steps
}

// finalWrites shows that the poller still does what it is there for.
func (h *history) finalWrites() {
	for i, t := range h.tables {
		h.reshard(t, false, i)
		for j := range t.items {
			h.write(t, 2<<16+j)
		}
	}
}
