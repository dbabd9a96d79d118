package poller

import "github.com/sluicehq/sluice/state"

// due reports whether n must be read now: it is not finished or halted, and no
// known parent must be settled first. An unknown parent does not count: the poller
// asks the service for it (parents.go).
func (f *forest) due(n *node) bool {
	if n.phase != waiting {
		return n.phase == running
	}
	p := f.nodes[n.parent]
	return n.parent == "" || p == nil || p.phase == done
}

// doubt makes claimed shards without a settled record wait for a listing. Only a
// listing tells whether their first records are lost.
func (f *forest) doubt(stored []state.Shard) {
	for _, sh := range stored {
		if n := f.nodes[sh.ID]; n != nil && n.phase == waiting && sh.Position.Sequence == "" {
			n.unlisted = true
		}
	}
}

// account keeps a gauge for each shard that is due, and for no other. Health needs
// a proof for each.
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

// dismiss removes every gauge at the end of run.
func (s *stream) dismiss() {
	for _, g := range s.due {
		s.p.gauges.remove(g)
	}
	clear(s.due)
}
