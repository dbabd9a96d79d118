package poller

// account has a gauge for each shard that is due, and for no other. NotReady
// wants a proof of each.
func (s *stream) account() {
	for id, g := range s.due {
		if !s.forest.IsDue(id) {
			s.p.gauges.remove(g)
			delete(s.due, id)
		}
	}
	for id := range s.forest.Due() {
		if s.due[id] == nil {
			g := newGauge(s.shard(id), &s.p.clock)
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
