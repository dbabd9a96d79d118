package lineage

import "time"

// Nothing is read of shards that were closed before a start at LATEST. The
// start stores those that its listing shows as finished, and the parents that
// it names. But a listing may leave out shards, and so their ancestors. If one of
// those were taken for new, what it holds from just before the start would be
// handled beside the later changes of its descendants.

// past is what is known of the shards that were closed before the start.
type past struct {
	before  time.Time       // no shard that was created later is one of them
	shards  map[string]bool // whether their parents are known
	partial bool            // of some they are not
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

// trace adds the ancestors of those that are known.
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

// possible reports whether n may turn out to be one of them: it waits for a
// listing that shows how they are related, but not for ever.
func (p *past) possible(n *node) bool {
	return p.partial && !p.has(n.ID) && !n.stored && n.latest == "" && n.shown+n.missing < lateListings &&
		!ShardCreated(n.ID).After(p.before)
}
