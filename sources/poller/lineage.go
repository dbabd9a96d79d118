package poller

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// confirmations is the number of listings in a row that must lack a shard before
// it counts as missing. Pages of one listing can contradict each other.
const confirmations = 2

// listed is a shard in a listing.
type listed struct {
	id, parent string
	closed     bool
	first      sluice.Sequence // its first sequence number, even if trimmed
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
	stored     bool      // the store has it: it was begun before
	awaiting   bool      // ended here, and its children are not listed yet
	gone       bool      // the service denied it; a listing must confirm
	orphan     int       // listings that showed it without its parent
	parentOver bool      // its unlisted parent was settled to its end or no longer exists
	missing    int       // listings without it
	shown      int       // listings with it
	unlisted   bool      // the service knows it, but no listing has shown it
	notYet     time.Time // earliest start
	latest     string    // iterator taken at a start at LATEST
}

// forest holds the lineage of a stream's shards and decides which may be read: a
// child only after its parent is settled to its end. One goroutine uses it.
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

// remember merges the stored shards. The poller also tries a stored shard that is
// not listed: the service says whether it is gone.
func (f *forest) remember(shards []state.Shard) {
	over := make(map[string]bool)
	for _, sh := range shards {
		if sh.Position.Finished && sh.Epoch == 0 { // never read
			f.past.add(sh.ID)
		}
		if sh.Parent != "" {
			over[sh.Parent] = true // else its child would not have begun
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
		if sh.Position.Finished && n.phase != running { // a running shard reports its own end
			n.phase = done
		}
	}
	for _, n := range f.nodes {
		n.parentOver = n.parentOver || over[n.parent]
	}
	f.past.trace(f.nodes)
}

// merge merges a listing and returns its number of new shards. A full listing
// proves that unlisted shards are missing, unless they were created after it
// began. began is zero for a partial listing.
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
		// A long listing may show children and omit their parents, if both were
		// created after it began.
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

// blocked reports whether n must wait for its parent. An unknown parent was
// trimmed. To be sure, a second listing must lack it too, and the service must say
// that it no longer exists (see parents.go), unless n was begun before.
func (f *forest) blocked(n *node) bool {
	if n.parent == "" {
		return false
	}
	if p := f.nodes[n.parent]; p != nil {
		return p.phase != done
	}
	return !n.stored && !n.parentOver
}

// ready returns the shards that may start, oldest first, and the earliest time at
// which a delayed shard may start (zero: none).
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
// possibly trimmed parent, the service denied a shard, or the children of an ended
// shard are not listed yet.
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

// agrees reports whether a listing, merged before, has every known shard and shows
// no closed shard as open. Otherwise the listing is old or incomplete.
func (f *forest) agrees(shards []listed) bool {
	for n := range maps.Values(f.nodes) {
		if n.missing > 0 {
			return false
		}
	}
	return !f.reopens(shards)
}

// reopens reports whether a listing, merged before, shows a closed shard as open.
func (f *forest) reopens(shards []listed) bool {
	return slices.ContainsFunc(shards, func(l listed) bool { return !l.closed && f.nodes[l.id].closed })
}

// denied notes that the service no longer knows the stream, so no listing will
// follow. Denied shards are gone, and unknown parents were trimmed.
func (f *forest) denied() {
	f.past.partial = false
	for n := range maps.Values(f.nodes) {
		n.parentOver, n.unlisted = true, false
		if n.gone {
			n.missing = confirmations
		}
	}
}

// childless reports whether id has no known child.
func (f *forest) childless(id string) bool {
	for n := range maps.Values(f.nodes) {
		if n.parent == id {
			return false
		}
	}
	return true
}
