package poller

import "testing"

// A listing that was asked for before a shard ended says nothing about the end
// of its stream: the shard's children may have been made since.
func TestAListingUnderWayIsNoSignOfTheEnd(t *testing.T) {
	s := &stream{forest: newForest(), replaced: true}
	all := []listed{{id: "a"}}
	s.forest.merge(all, whole)
	s.forest.node("a").phase = done
	before := found{listing: listing{shards: all}, round: s.round}
	s.stirred()
	if s.concluded(before, 0); s.quiet != 0 {
		t.Errorf("quiet %d after a listing that was asked for before", s.quiet)
	}
	if s.concluded(found{listing: listing{shards: all}, round: s.round}, 0); s.quiet != 1 {
		t.Errorf("quiet %d after one that was asked for later", s.quiet)
	}
}
