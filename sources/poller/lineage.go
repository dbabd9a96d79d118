package poller

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// confirmations is how many listings in a row must agree that a shard is not
// there: pages of one listing can contradict each other.
const confirmations = 2

// listed is a shard as a listing shows it.
type listed struct {
	id, parent string
	closed     bool
	first      sluice.Sequence // its first sequence number, whether that is still there or not
}

type phase uint8

const (
	waiting phase = iota
	running
	done   // settled to its end
	halted // at a gap, for good
)

// node is one shard of the forest.
type node struct {
	listed
	phase      phase
	stored     bool      // the store knows it: it was begun before
	awaiting   bool      // ended here, and its children are to be listed
	gone       bool      // the service denied it; a listing must say whether it is there
	orphan     int       // listings that showed it without its parent
	parentOver bool      // its parent, which no listing shows, was settled to its end or is no more
	missing    int       // listings that did not show it
	shown      int       // listings that did
	unlisted   bool      // the service knows it, and no listing showed it yet
	notYet     time.Time // not to be started before
	latest     string    // iterator taken at a start at LATEST
}

// forest holds the lineage of a stream's shards and decides which may be read:
// a child only when its parent is settled to its end. It is used by one
// goroutine.
type forest struct {
	nodes map[string]*node
	past  *past
}

func newForest() *forest { return &forest{nodes: make(map[string]*node), past: newPast()} }

func (f *forest) node(id string) *node {
	n := f.nodes[id]
	if n == nil {
		n = &node{listed: listed{id: id}}
		f.nodes[id] = n
	}
	return n
}

// remember merges what the store has. A shard that is stored but not listed
// is tried all the same: the service says whether it is gone.
func (f *forest) remember(shards []state.Shard) {
	over := make(map[string]bool)
	for _, sh := range shards {
		if sh.Position.Finished && sh.Epoch == 0 { // nobody read it
			f.past.add(sh.ID)
		}
		if sh.Parent != "" {
			over[sh.Parent] = true // else its child had not been begun
		}
		n := f.nodes[sh.ID]
		if n == nil && sh.Position.Finished {
			over[sh.ID] = true
			continue
		}
		n = f.node(sh.ID)
		n.stored, n.unlisted = true, false
		if n.parent == "" {
			n.parent = sh.Parent
		}
		if sh.Position.Finished && n.phase != running { // what runs here says so itself when it is back
			n.phase = done
		}
	}
	for _, n := range f.nodes {
		n.parentOver = n.parentOver || over[n.parent]
	}
	f.past.trace(f.nodes)
}

// merge takes a listing and returns how many shards it had that were new. A
// listing of all shards says that others are missing, unless they were made after
// it began. Of a listing of some, began is zero.
func (f *forest) merge(shards []listed, began time.Time) (fresh int) {
	in := make(map[string]bool, len(shards))
	for _, l := range shards {
		in[l.id] = true
		n := f.nodes[l.id]
		if n == nil {
			n = f.node(l.id)
			fresh++
		}
		n.closed = n.closed || l.closed
		if l.first != "" {
			n.first = l.first
		}
		if l.parent != "" {
			n.parent = l.parent
		}
		n.missing, n.unlisted = 0, false
	}
	if began.IsZero() {
		return fresh
	}
	for id, n := range f.nodes {
		// A listing of many pages takes a while. Of shards that were made meanwhile
		// it may show children and leave out their parents.
		made := shardCreated(id).Add(clockMargin).After(began)
		switch {
		case in[id]:
			n.gone = false
			n.shown++
		case made:
		case n.phase == done && n.missing+1 >= confirmations:
			delete(f.nodes, id) // trimmed and not needed
			continue
		default:
			n.missing++
		}
		if !made && n.phase == waiting && n.parent != "" && f.nodes[n.parent] == nil {
			n.orphan++
		}
	}
	return fresh
}

// blocked reports whether n must wait for its parent. A parent of which
// nothing is known was trimmed; to be sure, a second listing must miss it too,
// and the service say that it is no more (see parents.go), unless n was begun
// before.
func (f *forest) blocked(n *node) bool {
	if n.parent == "" {
		return false
	}
	if p := f.nodes[n.parent]; p != nil {
		return p.phase != done
	}
	return !n.stored && !n.parentOver
}

// ready returns the shards that may be started, the oldest first, and when the
// next of those that must wait for a moment may be (zero: none).
func (f *forest) ready(now time.Time) (start []*node, next time.Time) {
	for _, n := range f.nodes {
		if n.phase != waiting || n.gone && n.missing < confirmations || n.unlisted && n.missing < lateListings || f.past.possible(n) || f.blocked(n) {
			continue
		}
		if n.notYet.After(now) {
			if next.IsZero() || n.notYet.Before(next) {
				next = n.notYet
			}
			continue
		}
		start = append(start, n)
	}
	slices.SortFunc(start, func(a, b *node) int { return strings.Compare(a.id, b.id) })
	return start, next
}

// unsure reports whether another listing should come soon: a shard waits for a
// parent that may be trimmed, the service denied one, or one ended and its
// children are not shown yet.
func (f *forest) unsure() bool {
	for n := range maps.Values(f.nodes) {
		if n.awaiting {
			if n.awaiting = f.childless(n.id); n.awaiting {
				return true
			}
		}
		if n.phase != waiting {
			continue
		}
		if n.gone && n.missing < confirmations || n.unlisted && n.missing < lateListings || f.past.possible(n) {
			return true
		}
		if n.parent != "" && f.nodes[n.parent] == nil && f.blocked(n) {
			return true
		}
	}
	return false
}

// count adds the shards to l.
func (f *forest) count(l Lineage) Lineage {
	for n := range maps.Values(f.nodes) {
		switch n.phase {
		case waiting:
			l.Waiting++
		case running:
			l.Reading++
		case done:
			l.Finished++
		case halted:
			l.Halted++
		}
	}
	return l
}

// settled reports whether every shard is settled to its end.
func (f *forest) settled() bool {
	for n := range maps.Values(f.nodes) {
		if n.phase != done {
			return false
		}
	}
	return true
}

// agrees reports whether a listing, merged before, leaves out no shard that is
// known and shows none as open that was shown closed: if not it is old, or
// not whole.
func (f *forest) agrees(shards []listed) bool {
	for n := range maps.Values(f.nodes) {
		if n.missing > 0 {
			return false
		}
	}
	return !f.reopens(shards)
}

// reopens reports whether a listing, merged before, shows a shard as open that
// was shown closed.
func (f *forest) reopens(shards []listed) bool {
	return slices.ContainsFunc(shards, func(l listed) bool { return !l.closed && f.nodes[l.id].closed })
}

// denied notes that the service knows the stream no more, so that no listing
// will say what is not there: shards that it denied are gone, and parents that
// nobody knows were trimmed.
func (f *forest) denied() {
	f.past.partial = false
	for n := range maps.Values(f.nodes) {
		n.parentOver, n.unlisted = true, false
		if n.gone {
			n.missing = confirmations
		}
	}
}

// childless reports whether no child of id is known.
func (f *forest) childless(id string) bool {
	for n := range maps.Values(f.nodes) {
		if n.parent == id {
			return false
		}
	}
	return true
}
