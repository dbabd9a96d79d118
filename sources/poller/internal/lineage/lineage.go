// Package lineage holds the shards of one stream and decides which may be read:
// a child only when its parent is settled to its end.
//
// A [Forest] takes what listings show, what the store has, what the service
// says of a shard, and how the reading of a shard ended. It makes no call.
package lineage

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// Confirmations is how many listings in a row must agree that a shard is not
// there: pages of one listing can contradict each other.
const Confirmations = 2

// lateListings is how many listings in a row may leave out a shard that the
// service knows. Until one shows it, nobody knows its own parent; after that it
// is read all the same.
const lateListings = 5

// ClockMargin is how far the service's clocks are apart from each other, with
// what a Date header's rounding adds.
const ClockMargin = 2 * time.Second

// Listed is a shard as a listing shows it.
type Listed struct {
	ID, Parent string
	Closed     bool
	First      sluice.Sequence // its first sequence number, whether that is still there or not
}

// node is one shard of the forest: one phase, and the evidence that decides
// about the next.
type node struct {
	Listed
	phase     phase
	notBefore time.Time // when it may be started at the earliest
	latest    string    // iterator taken at a start at LATEST
	evidence
}

type phase uint8

const (
	waiting   phase = iota // to be started
	running                // a worker has it
	expectant              // settled to its end here, and no child of it is known yet
	done                   // settled to its end
	halted                 // at a gap, for good
)

// settled reports whether the shard is settled to its end.
func (n *node) settled() bool { return n.phase == expectant || n.phase == done }

// evidence is what the store, the service and the listings said of a shard.
type evidence struct {
	stored     bool // the store knows it: it was begun before
	denied     bool // the service denied it; a listing must say whether it is there
	unlisted   bool // the service knows it, and no listing showed it yet
	parentOver bool // its parent, which no listing shows, was settled to its end or is no more

	// Listings of all shards.
	shown    int // that showed it
	missing  int // in a row that did not
	orphaned int // that showed it without its parent
}

// undecided reports whether a listing must say first whether the shard is
// there, or what its parent is.
func (e *evidence) undecided() bool {
	return e.denied && e.missing < Confirmations || e.unlisted && e.missing < lateListings
}

// Forest is the lineage of a stream's shards. It is used by one goroutine.
type Forest struct {
	nodes map[string]*node
	past  *past
}

// New returns a forest without shards.
func New() *Forest { return &Forest{nodes: make(map[string]*node), past: newPast()} }

func (f *Forest) node(id string) *node {
	n := f.nodes[id]
	if n == nil {
		n = &node{Listed: Listed{ID: id}}
		f.nodes[id] = n
	}
	return n
}

// StartedAt says when the stream's first reading began.
func (f *Forest) StartedAt(at time.Time) { f.past.before = at.Add(2 * ClockMargin) }

// StartLatest gives a shard an iterator that was taken at a start at LATEST.
func (f *Forest) StartLatest(id, iterator string) { f.node(id).latest = iterator }

// Remember merges what the store has. A shard that is stored but not listed
// is tried all the same: the service says whether it is gone.
func (f *Forest) Remember(shards []state.Shard) {
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
		if n.Parent == "" {
			n.Parent = sh.Parent
		}
		if sh.Position.Finished && n.phase != running && !n.settled() { // what runs here says so itself when it is back
			n.phase = done
		}
	}
	for _, n := range f.nodes {
		n.parentOver = n.parentOver || over[n.Parent]
	}
	f.past.trace(f.nodes)
}

// Merge takes a listing and returns how many shards it had that were new. A
// listing of all shards says that others are missing, unless they were made after
// it began. Of a listing of some, began is zero.
func (f *Forest) Merge(shards []Listed, began time.Time) (fresh int) {
	in := make(map[string]bool, len(shards))
	for _, l := range shards {
		in[l.ID] = true
		n := f.nodes[l.ID]
		if n == nil {
			n = f.node(l.ID)
			fresh++
		}
		n.Closed = n.Closed || l.Closed
		if l.First != "" {
			n.First = l.First
		}
		if l.Parent != "" {
			n.Parent = l.Parent
		}
		n.missing, n.unlisted = 0, false
	}
	if began.IsZero() {
		return fresh
	}
	for id, n := range f.nodes {
		// A listing of many pages takes a while. Of shards that were made meanwhile
		// it may show children and leave out their parents.
		made := ShardCreated(id).Add(ClockMargin).After(began)
		switch {
		case in[id]:
			n.denied = false
			n.shown++
		case made:
		case n.settled() && n.missing+1 >= Confirmations:
			delete(f.nodes, id) // trimmed and not needed
			continue
		default:
			n.missing++
		}
		if !made && n.phase == waiting && n.Parent != "" && f.nodes[n.Parent] == nil {
			n.orphaned++
		}
	}
	return fresh
}

// AwaitListing has shards that were claimed, and of which nothing was settled,
// wait for a listing: without it nobody can tell whether their first records are
// lost.
func (f *Forest) AwaitListing(stored []state.Shard) {
	for _, sh := range stored {
		if n := f.nodes[sh.ID]; n != nil && n.phase == waiting && sh.Position.Sequence == "" {
			n.unlisted = true
		}
	}
}

// blocked reports whether n must wait for its parent. A parent of which
// nothing is known was trimmed; to be sure, a second listing must miss it too,
// and the service say that it is no more (see parents.go), unless n was begun
// before.
func (f *Forest) blocked(n *node) bool {
	if n.Parent == "" {
		return false
	}
	if p := f.nodes[n.Parent]; p != nil {
		return !p.settled()
	}
	return !n.stored && !n.parentOver
}

// Ready returns the shards that may be started, the oldest first, and when the
// next of those that must wait for a moment may be (zero: none).
func (f *Forest) Ready(now time.Time) (ids []string, next time.Time) {
	for _, n := range f.nodes {
		if n.phase != waiting || n.undecided() || f.past.possible(n) || f.blocked(n) {
			continue
		}
		if n.notBefore.After(now) {
			if next.IsZero() || n.notBefore.Before(next) {
				next = n.notBefore
			}
			continue
		}
		ids = append(ids, n.ID)
	}
	slices.SortFunc(ids, strings.Compare)
	return ids, next
}

// Start is what a worker must know of its shard.
type Start struct {
	Listed
	Gone   bool   // listings agree that it is no more
	Past   bool   // it was closed before the start at LATEST
	Latest string // iterator taken at that start; empty when there is none
}

// Begin notes that a worker begins with a shard that was ready.
func (f *Forest) Begin(id string) Start {
	n := f.node(id)
	s := Start{Listed: n.Listed, Gone: n.denied, Past: f.past.has(id), Latest: n.latest}
	n.phase, n.latest = running, ""
	return s
}

// End is how a worker came back from its shard.
type End uint8

const (
	NotBegun End = iota // it did not get the shard
	Finished            // the shard is settled to its end, and that is stored
	Stopped             // the shard is to be read on
	Denied              // the service does not know the shard
	Halted              // the shard stays at a gap, for good
)

// Ended notes how a worker came back. A shard that is to be begun again is not
// before that time.
func (f *Forest) Ended(id string, how End, notBefore time.Time) {
	n := f.node(id)
	n.phase, n.notBefore = waiting, notBefore
	switch how {
	case NotBegun:
		return
	case Finished:
		n.phase = expectant
	case Denied:
		n.denied, n.missing = true, 0
	case Halted:
		n.phase = halted
	}
	n.stored = true
}

// Unsure reports whether another listing should come soon: a shard waits for a
// parent that may be trimmed, the service denied one, or one ended and its
// children are not shown yet.
func (f *Forest) Unsure() bool {
	for n := range maps.Values(f.nodes) {
		if n.phase == expectant {
			if f.childless(n.ID) {
				return true
			}
			n.phase = done
		}
		if n.phase == waiting && (n.undecided() || f.past.possible(n) || f.orphan(n)) {
			return true
		}
	}
	return false
}

// childless reports whether no child of id is known.
func (f *Forest) childless(id string) bool {
	for n := range maps.Values(f.nodes) {
		if n.Parent == id {
			return false
		}
	}
	return true
}

// Due lists the shards that are to be read now.
func (f *Forest) Due() iter.Seq[string] {
	return func(yield func(string) bool) {
		for id := range f.nodes {
			if f.IsDue(id) && !yield(id) {
				return
			}
		}
	}
}

// IsDue reports whether a shard is to be read now: it is known, not finished or
// halted, and no parent that is known has to be settled first. A parent of which
// nothing is known is no excuse: the service is asked for it (parents.go).
func (f *Forest) IsDue(id string) bool {
	n := f.nodes[id]
	if n == nil || n.phase != waiting {
		return n != nil && n.phase == running
	}
	p := f.nodes[n.Parent]
	return n.Parent == "" || p == nil || p.settled()
}

// Counts is how many shards stand where.
type Counts struct{ Waiting, Running, Finished, Halted int }

// Count counts the shards.
func (f *Forest) Count() (c Counts) {
	for n := range maps.Values(f.nodes) {
		switch n.phase {
		case waiting:
			c.Waiting++
		case running:
			c.Running++
		case expectant, done:
			c.Finished++
		case halted:
			c.Halted++
		}
	}
	return c
}

// Empty reports whether no shard is known.
func (f *Forest) Empty() bool { return len(f.nodes) == 0 }

// Settled reports whether every shard is settled to its end.
func (f *Forest) Settled() bool {
	for n := range maps.Values(f.nodes) {
		if !n.settled() {
			return false
		}
	}
	return true
}

// Agrees reports whether a listing, merged before, leaves out no shard that is
// known and shows none as open that was shown closed: if not it is old, or
// not whole.
func (f *Forest) Agrees(shards []Listed) bool {
	for n := range maps.Values(f.nodes) {
		if n.missing > 0 {
			return false
		}
	}
	return !f.reopens(shards)
}

// reopens reports whether a listing, merged before, shows a shard as open that
// was shown closed.
func (f *Forest) reopens(shards []Listed) bool {
	return slices.ContainsFunc(shards, func(l Listed) bool { return !l.Closed && f.nodes[l.ID].Closed })
}

// StreamDenied notes that the service knows the stream no more, so that no
// listing will say what is not there: shards that it denied are gone, and parents
// that nobody knows were trimmed.
func (f *Forest) StreamDenied() {
	f.past.partial = false
	for n := range maps.Values(f.nodes) {
		n.parentOver, n.unlisted = true, false
		if n.denied {
			n.missing = Confirmations
		}
	}
}
