package poller

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/flow"
)

// Health says whether the poller does what it is there for.
type Health struct {
	Ready   bool
	Reasons []string // why it is not; empty when it is
}

// Status is one shard being read.
type Status struct {
	Shard     Shard
	Position  string        // sequence number of the last settled record, or empty
	Lag       time.Duration // age of the oldest record not settled; about 0 on an idle shard
	Unsettled uint64        // records in the flow
	Pinned    int64         // bytes that its pages take, of Options.MaxMemory
	LastPoll  time.Time     // the last good one
	Err       error         // of the last poll
}

// Memory is what the pages of all shards take.
type Memory struct {
	Limit   int64 // Options.MaxMemory, in bytes
	Pinned  int64 // taken or reserved, in bytes
	Waiting int   // shards for whose next page there is no room
}

// HeldItem is an item whose lane waits, and its shard.
type HeldItem struct {
	Shard Shard
	flow.Held
}

// Health returns the poller's readiness: all streams are listed, every shard
// is polled and its watermark moves, no record has waited for most of its life in
// the stream, positions can be stored, no route is in an outage, and no gap waits
// to be acknowledged.
func (p *Poller) Health() Health {
	reasons := p.health.reasons()
	for _, g := range p.gaps.list() {
		reasons = append(reasons, g.String()+": acknowledge the gap")
	}
	for _, f := range p.health.following() {
		reasons = append(reasons, f.trouble(p.o.StaleAfter)...)
	}
	for _, g := range p.gauges.all() {
		g.observe()
		reasons = append(reasons, g.trouble(p.o.StaleAfter, p.o.StallAfter)...)
	}
	for _, s := range p.o.Flow.Group.States() {
		if trouble := s.Trouble(); trouble != "" {
			reasons = append(reasons, trouble)
		}
	}
	return Health{Ready: len(reasons) == 0, Reasons: reasons}
}

// Lag returns the largest lag of the shards being read.
func (p *Poller) Lag() time.Duration {
	var lag time.Duration
	for _, g := range p.gauges.all() {
		lag = max(lag, g.observe())
	}
	return lag
}

// Shards lists the shards being read, ordered by table and id.
func (p *Poller) Shards() []Status {
	var all []Status
	for _, g := range p.gauges.all() {
		all = append(all, g.status())
	}
	return all
}

// Memory returns what the pages of all shards take.
func (p *Poller) Memory() Memory {
	pinned, waiting := p.quotas.memory.state()
	return Memory{Limit: p.o.MaxMemory, Pinned: pinned, Waiting: waiting}
}

// Held lists the items that wait for a retry or a stuck handler, the oldest
// first.
func (p *Poller) Held() []HeldItem {
	var all []HeldItem
	for _, g := range p.gauges.all() {
		for _, h := range g.flow.Held() {
			all = append(all, HeldItem{g.shard, h})
		}
	}
	slices.SortStableFunc(all, func(a, b HeldItem) int { return int(b.Age - a.Age) })
	return all
}

// health is what concerns the poller as a whole.
type health struct {
	mu     sync.Mutex
	open   []*follower // nil before the start and after the end
	stores map[string]trouble
	halts  []Shard
}

type trouble struct {
	err   error
	since time.Time
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

// store notes how a kind of call to the store ended.
func (h *health) store(call string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		delete(h.stores, call)
		return
	}
	t := h.stores[call]
	if t.err == nil {
		t.since = time.Now()
	}
	t.err = err
	if h.stores == nil {
		h.stores = make(map[string]trouble)
	}
	h.stores[call] = t
}

func (h *health) halt(s Shard) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.halts = append(h.halts, s)
}

func (h *health) reasons() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var reasons []string
	if h.open == nil {
		reasons = append(reasons, "not reading: the streams are not open")
	}
	for _, call := range slices.Sorted(maps.Keys(h.stores)) {
		t := h.stores[call]
		reasons = append(reasons, fmt.Sprintf("state store: %s fails since %s, so that records come again after a restart: see that it has room and can be written: %v", call, t.since.Format(time.RFC3339), t.err))
	}
	for _, s := range h.halts {
		reasons = append(reasons, fmt.Sprintf("table %s shard %s: halted at a gap", s.Table, s.ID))
	}
	return reasons
}
