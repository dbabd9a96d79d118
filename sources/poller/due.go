package poller

import "github.com/sluicehq/sluice/state"

// due reports whether n is to be read now: it is not finished or halted, and
// no parent that is known has to be settled first. A parent of which nothing is
// known is no excuse: the service is asked for it (parents.go).
func (f *forest) due(n *node) bool {
	if n.phase != waiting {
		return n.phase == running
	}
	p := f.nodes[n.parent]
	return n.parent == "" || p == nil || p.phase == done
}

// doubt has shards that were claimed, and of which nothing was settled, wait for
// a listing: without it nobody can tell whether their first records are lost.
func (f *forest) doubt(stored []state.Shard) {
	for _, sh := range stored {
		if n := f.nodes[sh.ID]; n != nil && n.phase == waiting && sh.Position.Sequence == "" {
			n.unlisted = true
		}
	}
}

// account has a gauge for each shard that is due, and for no other. Health
// wants a proof of each.
func (s *stream) account() {
	for id, g := range s.due {
		if n := s.forest.nodes[id]; n == nil || !s.forest.due(n) {
			s.p.gauges.remove(g)
			delete(s.due, id)
		}
	}
	for id, n := range s.forest.nodes {
		if s.due[id] == nil && s.forest.due(n) {
			g := newGauge(Shard{Table: s.table, StreamARN: s.id.ARN, ID: id}, &s.p.clock)
			s.due[id] = g
			s.p.gauges.add(g)
		}
	}
}

// dismiss has no gauge any more, at the end of run.
func (s *stream) dismiss() {
	for _, g := range s.due {
		s.p.gauges.remove(g)
	}
	clear(s.due)
}
