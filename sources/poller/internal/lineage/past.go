package lineage

import "time"

// A start at LATEST reads nothing of shards that were closed before. It stores the
// shards that its listing shows as finished, and their listed parents. But a
// listing may lack shards, and so their ancestors. If the poller took one of them
// for new, it would handle records from just before the start beside later changes
// in its descendants.

// past holds the known shards that were closed before the start.
type past struct {
	before  time.Time       // shards created later do not belong
	shards  map[string]bool // whether their parents are known
	partial bool            // some parents are unknown
}

func newPast() *past { return &past{shards: make(map[string]bool)} }

func (p *past) add(id string) {
	if !p.has(id) {
		p.shards[id] = false
	}
}

func (p *past) has(id string) bool {
	_, ok := p.shards[id]
	return ok
}

// trace adds the ancestors of known past shards.
func (p *past) trace(nodes map[string]*node) {
	for more := true; more; {
		more = false
		for id, known := range p.shards {
			n := nodes[id]
			if known || n == nil || n.unlisted {
				continue
			}
			p.shards[id] = true
			if n.Parent != "" && !p.has(n.Parent) {
				p.add(n.Parent)
				more = true
			}
		}
	}
	p.partial = false
	for _, known := range p.shards {
		p.partial = p.partial || !known
	}
}

// possible reports whether n may be a past shard: it waits for a listing that
// shows its relation, but not for ever.
func (p *past) possible(n *node) bool {
	return p.partial && !p.has(n.ID) && !n.stored && n.latest == "" && n.shown+n.missing < lateListings &&
		!ShardCreated(n.ID).After(p.before)
}
