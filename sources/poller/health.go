package poller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/flow"
)

// Status is one shard being read.
type Status struct {
	Shard     Shard
	Position  string        // sequence number of the last settled record, or empty
	Lag       time.Duration // age of the oldest record not settled; about 0 on an idle shard
	Unsettled uint64        // in the flow
	Pinned    int64         // bytes of its pages, counted for Options.MaxMemory
	LastPoll  time.Time     // last good poll
	Err       error         // of the last poll
}

// memory is the memory of the pages of all shards.
type memory struct {
	Limit   int64 // Options.MaxMemory, in bytes
	Pinned  int64 // taken or reserved, in bytes
	Waiting int   // shards that wait for room for a page
}

// HeldItem is a waiting item and its shard.
type HeldItem struct {
	Shard Shard
	flow.Held
}

// NotReady returns why the poller is not ready; nothing when it is. The poller is
// ready when all of this was proven recently:
//   - Each table was asked for its stream, and each stream for its shards.
//   - Each listed shard that is not finished and does not wait for its parent had
//     a good poll within StaleAfter. Or it waits for its full window, whose
//     watermark moved within StallAfter. Or another living owner reads it.
//   - Each watermark that moved is stored.
//   - No record has waited for most of the stream's retention.
//   - No route is in trouble, as [flow.RouteState.Trouble] says.
//   - No gap waits for acknowledgement.
//
// Each missing proof is a reason. So is each call to the store that fails or does
// not return. NotReady takes short locks and makes no call.
func (p *Poller) NotReady() []string {
	reasons := p.health.reasons(p.o.CallTimeout)
	if shards, since := p.checkpoints.Unproven(p.o.StaleAfter); len(shards) > 0 {
		reasons = append(reasons, fmt.Sprintf("state store: the positions of %d shards (such as %s), which were settled after %s, are not stored, so that records come again after a restart: see that it has room and can be written",
			len(shards), shards[0], since.Format(time.RFC3339)))
	}
	for _, g := range p.gaps.list() {
		reasons = append(reasons, g.String()+": acknowledge the gap")
	}
	for _, f := range p.health.following() {
		reasons = append(reasons, f.trouble(p.o.StaleAfter, p.o.DiscoverEvery+p.o.StaleAfter)...)
	}
	for _, g := range p.gauges.all() {
		reasons = append(reasons, g.trouble(p.o.StaleAfter, p.o.StallAfter)...)
	}
	for _, s := range p.o.Flow.Group.States() {
		if trouble := s.Trouble(); trouble != "" {
			reasons = append(reasons, trouble)
		}
	}
	return reasons
}

// Lag returns the largest lag of the shards that are being read.
func (p *Poller) Lag() time.Duration {
	var lag time.Duration
	for _, g := range p.gauges.all() {
		lag = max(lag, g.observe())
	}
	return lag
}

// Shards lists the shards that are being read, ordered by table and id.
func (p *Poller) Shards() []Status {
	var all []Status
	for _, g := range p.gauges.all() {
		if s, ok := g.status(); ok {
			all = append(all, s)
		}
	}
	return all
}

// KnownShard is a shard of a stream's lineage, whoever reads it.
type KnownShard struct {
	Shard   Shard
	Parent  string // id; the parent may be trimmed
	Closed  bool   // DynamoDB writes no more records to it
	Settled bool   // to its end
	Halted  bool   // at a gap
}

// Lineage lists the shards of the last listings, ordered by table, stream and id. It
// may lag behind [Poller.Shards] by Options.DiscoverEvery.
func (p *Poller) Lineage() []KnownShard {
	var all []KnownShard
	for _, f := range p.health.following() {
		f.mu.Lock()
		for _, g := range f.gens {
			all = append(all, g.lineageOf()...)
		}
		f.mu.Unlock()
	}
	slices.SortStableFunc(all, func(a, b KnownShard) int { return strings.Compare(a.Shard.Table, b.Shard.Table) })
	return all
}

// lineageOf returns the shards of the stream that were known last.
func (s *stream) lineageOf() []KnownShard {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]KnownShard, len(s.known))
	for i, n := range s.known {
		all[i] = KnownShard{s.shard(n.ID), n.Parent, n.Closed, n.Settled, n.Halted}
	}
	return all
}

// memory returns the memory of the pages of all shards.
func (p *Poller) memory() memory {
	pinned, waiting := p.quotas.Memory()
	return memory{Limit: p.o.MaxMemory, Pinned: pinned, Waiting: waiting}
}

// Held lists the items that wait for a retry or a stuck handler, oldest first.
func (p *Poller) Held() []HeldItem {
	var all []HeldItem
	for _, g := range p.gauges.all() {
		if f := g.reads(); f != nil {
			for _, h := range f.Held() {
				all = append(all, HeldItem{g.shard, h})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b HeldItem) int { return int(b.Age - a.Age) })
	return all
}

// Park parks the records whose last call of route failed, and counts them: see
// [flow.Flow.Park]. It covers the shards that this poller reads. It is safe for
// concurrent use.
func (p *Poller) Park(route string, dryRun bool) (parked, pending int) {
	for _, g := range p.gauges.all() {
		if f := g.reads(); f != nil {
			n, more := f.Park(route, dryRun)
			parked, pending = parked+n, pending+more
		}
	}
	return parked, pending
}

// health is the state of the poller as a whole.
type health struct {
	mu       sync.Mutex
	open     []*follower // nil before the start and after the end
	stores   map[string]trouble
	underway map[*underway]struct{}
	halts    map[Shard]struct{}
}

func newHealth() *health {
	return &health{stores: make(map[string]trouble), underway: make(map[*underway]struct{}), halts: make(map[Shard]struct{})}
}

// underway is a call to the store that has not returned.
type underway struct {
	call  string
	since time.Time
}

type trouble struct {
	err   error
	since time.Time
}

// note keeps err and the time of its first occurrence.
func (t *trouble) note(err error) {
	if t.err == nil {
		t.since = time.Now()
	}
	t.err = err
}

func (h *health) begin(following []*follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = following
}

func (h *health) following() []*follower {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

// store notes the result of a kind of call to the store.
func (h *health) store(call string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		delete(h.stores, call)
		return
	}
	t := h.stores[call]
	t.note(err)
	h.stores[call] = t
}

// begun notes the start of a call to the store, until returned.
func (h *health) begun(call string) *underway {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := &underway{call, time.Now()}
	h.underway[u] = struct{}{}
	return u
}

func (h *health) returned(u *underway) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.underway, u)
}

// hung returns the due time of overdue calls by name. mu is held.
func (h *health) hung(timeout time.Duration) map[string]time.Time {
	calls := make(map[string]time.Time)
	for u := range h.underway {
		if first, ok := calls[u.call]; time.Since(u.since) > timeout && (!ok || u.since.Before(first)) {
			calls[u.call] = u.since
		}
	}
	return calls
}

func (h *health) halt(s Shard) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.halts[s] = struct{}{}
}

// reasons returns the troubles of the poller as a whole. A call to the store that
// takes longer than timeout ignores its context.
func (h *health) reasons(timeout time.Duration) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var reasons []string
	if h.open == nil {
		reasons = append(reasons, "not reading: the streams are not open")
	}
	for _, call := range slices.Sorted(maps.Keys(h.stores)) {
		t := h.stores[call]
		reasons = append(reasons, fmt.Sprintf("state store: %s fails since %s, so that records come again after a restart: see that it can be reached, has room and can be written: %v", call, t.since.Format(time.RFC3339), brief(t.err)))
	}
	hung := h.hung(timeout)
	for _, call := range slices.Sorted(maps.Keys(hung)) {
		reasons = append(reasons, fmt.Sprintf("state store: %s has not returned since %s: see that its disk is there, has room and can be written, and restart when it does not go on", call, hung[call].Format(time.RFC3339)))
	}
	for _, s := range slices.SortedFunc(maps.Keys(h.halts), func(a, b Shard) int {
		return cmp.Or(strings.Compare(a.Table, b.Table), strings.Compare(a.ID, b.ID))
	}) {
		reasons = append(reasons, fmt.Sprintf("table %s shard %s: halted at a gap", s.Table, s.ID))
	}
	return reasons
}
