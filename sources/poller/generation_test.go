package poller

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/sources/poller/internal/lineage"
)

// A listing that was asked for before a shard ended says nothing about the end
// of its stream: the shard's children may have been made since.
func TestAListingUnderWayIsNoSignOfTheEnd(t *testing.T) {
	s := &stream{forest: lineage.New(), replaced: true}
	all := []lineage.Listed{{ID: "a"}}
	s.forest.Merge(all, whole)
	s.forest.Begin("a")
	s.forest.Ended("a", lineage.Finished, time.Time{})
	before := found{listing: listing{shards: all}, round: s.round}
	s.stirred()
	if s.concluded(before, 0); s.quiet != 0 {
		t.Errorf("quiet %d after a listing that was asked for before", s.quiet)
	}
	if s.concluded(found{listing: listing{shards: all}, round: s.round}, 0); s.quiet != 1 {
		t.Errorf("quiet %d after one that was asked for later", s.quiet)
	}
}

// whole is when a listing of all shards began: long after they were made.
var whole = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
