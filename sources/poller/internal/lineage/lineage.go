// Package lineage holds the shards of one stream and decides which may be read:
// a child only when its parent is settled to its end.
//
// A [Forest] combines listings, the stored positions, the service's answers about
// single shards, and how workers ended. It makes no call.
package lineage

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// Confirmations is the number of consecutive listings that must agree that a shard
// does not exist: pages of one listing can contradict each other.
const Confirmations = 2

// lateListings is the number of consecutive listings that may leave out a shard that
// the service knows. Until a listing shows the shard, its parent is unknown. After
// that many listings the shard is read anyway.
const lateListings = 5

// ClockMargin is the largest difference between the service's clocks, with the
// rounding of a Date header.
const ClockMargin = 2 * time.Second

// Listed is a shard as a listing shows it.
type Listed struct {
	ID, Parent string
	Closed     bool
	First      sluice.Sequence // first sequence number of the shard, trimmed or not
}

// node is one shard of the forest: its phase, and the evidence for the next phase.
type node struct {
	Listed
	phase     phase
	notBefore time.Time // earliest start
	latest    string    // iterator from a start at LATEST
	evidence
}

type phase uint8

const (
	waiting   phase = iota // to be started
	running                // a worker reads the shard
	expectant              // settled to its end by this process; no child is known yet
	done                   // settled to its end
	halted                 // at a gap, for good
)

// settled reports whether the shard is settled to its end.
func (n *node) settled() bool { return n.phase == expectant || n.phase == done }

// evidence holds the facts from the store, the service and the listings.
type evidence struct {
	stored     bool // the store has the shard: a worker had it before
	denied     bool // the service denied the shard; a listing must confirm that
	unlisted   bool // the service knows the shard, but no listing showed it yet
	parentOver bool // the parent, which no listing shows, was settled to its end or is trimmed

	// Numbers of full listings.
	shown    int // with the shard
	missing  int // consecutive, without the shard
	orphaned int // with the shard and without its parent
}

// undecided reports whether the poller needs another listing first: to learn whether
// the shard exists, or which parent it has.
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

// StartedAt sets the time of the stream's first start.
func (f *Forest) StartedAt(at time.Time) { f.past.before = at.Add(2 * ClockMargin) }

// StartLatest gives a shard its iterator from a start at LATEST.
func (f *Forest) StartLatest(id, iterator string) { f.node(id).latest = iterator }

// Remember merges the stored shards. The poller also tries a stored shard that no
// listing shows: the service then says whether the shard exists.
func (f *Forest) Remember(shards []state.Shard) {
	over := make(map[string]bool)
	for _, sh := range shards {
		if sh.Position.Finished && sh.Epoch == 0 { // nobody read it
			f.past.add(sh.ID)
		}
		if sh.Parent != "" {
			over[sh.Parent] = true // else no worker would have had the child
		}
		n := f.nodes[sh.ID]
		if n == nil && sh.Position.Finished {
			over[sh.ID] = true
			continue
		}
		n = f.node(sh.ID)
		n.stored, n.unlisted = true, false
		n.Parent = cmp.Or(n.Parent, sh.Parent)
		if sh.Position.Finished && n.phase != running && !n.settled() { // the worker of a running shard reports the end itself
			n.phase = done
		}
	}
	for _, n := range f.nodes {
		n.parentOver = n.parentOver || over[n.Parent]
	}
	f.past.trace(f.nodes)
}

// Merge merges a listing and returns the number of new shards. In a full listing,
// which began at began, other shards are missing, unless they were created after
// that. began is zero for a partial listing.
func (f *Forest) Merge(shards []Listed, began time.Time) (fresh int) {
	in := make(map[string]bool, len(shards)) // true: an earlier listing or the store had it
	for _, l := range shards {
		n := f.nodes[l.ID]
		if _, repeated := in[l.ID]; !repeated {
			in[l.ID] = n != nil
		}
		if n == nil {
			n = f.node(l.ID)
			fresh++
		}
		n.Closed = n.Closed || l.Closed
		n.First, n.Parent = cmp.Or(l.First, n.First), cmp.Or(l.Parent, n.Parent)
		n.missing, n.unlisted = 0, false
	}
	if began.IsZero() {
		return fresh
	}
	for id, n := range f.nodes {
		// A listing of many pages takes time. It may show children of shards created
		// meanwhile and leave out the parents.
		known, listed := in[id]
		created := ShardCreated(id)
		made := created.Add(ClockMargin).After(began) || created.IsZero() && listed && !known
		switch {
		case listed:
			n.denied = false
			n.shown++
		case made:
		case n.settled() && n.missing+1 >= Confirmations:
			delete(f.nodes, id) // trimmed
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

// AwaitListing makes claimed shards without a settled record wait for a listing: only
// a listing tells whether their first records are lost.
func (f *Forest) AwaitListing(stored []state.Shard) {
	for _, sh := range stored {
		if n := f.nodes[sh.ID]; n != nil && n.phase == waiting && sh.Position.Sequence == "" {
			n.unlisted = true
		}
	}
}

// blocked reports whether n must wait for its parent. An unknown parent was trimmed.
// To be sure, a second listing that began after n was made must miss the parent, and the service must confirm
// that it is trimmed (parents.go), unless a worker had n before.
func (f *Forest) blocked(n *node) bool {
	if n.Parent == "" {
		return false
	}
	if p := f.nodes[n.Parent]; p != nil {
		return !p.settled()
	}
	return !n.stored && !n.parentOver
}

// Ready returns the shards to start, oldest first, and the earliest start of the
// other shards (zero: none).
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

// Start describes a shard to its worker.
type Start struct {
	Listed
	Gone   bool   // listings agree that the shard is trimmed
	Past   bool   // the shard was closed before the start at LATEST
	Latest string // iterator from that start; may be empty
}

// Begin notes that a worker begins a ready shard.
func (f *Forest) Begin(id string) Start {
	n := f.node(id)
	s := Start{Listed: n.Listed, Gone: n.denied, Past: f.past.has(id), Latest: n.latest}
	n.phase, n.latest = running, ""
	return s
}

// End is the result of a worker.
type End uint8

const (
	NotBegun End = iota // the worker did not get the shard
	Finished            // the store has the shard as settled to its end
	Stopped             // another worker continues the shard
	Denied              // the service does not know the shard
	Halted              // the shard stays at a gap, for good
)

// Ended notes the result of a worker. The next worker starts at notBefore or later.
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

// Hasten ends the waits of shards that another worker has, which are at most d long.
func (f *Forest) Hasten(now time.Time, d time.Duration) {
	for n := range maps.Values(f.nodes) {
		if n.phase == waiting && n.notBefore.After(now) && !n.notBefore.After(now.Add(d)) {
			n.notBefore = now
		}
	}
}

// Unsure reports whether another listing should come soon: a shard waits for a
// parent that may be trimmed, the service denied a shard, or a finished shard has no
// known children yet.
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

// IsDue reports whether a shard must be read now: it is known, not finished or
// halted, and its parent is settled or unknown. The poller asks the service for an
// unknown parent (parents.go).
func (f *Forest) IsDue(id string) bool {
	n := f.nodes[id]
	if n == nil || n.phase != waiting {
		return n != nil && n.phase == running
	}
	p := f.nodes[n.Parent]
	return n.Parent == "" || p == nil || p.settled()
}

// Counts are numbers of shards.
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

// Shard is a shard for people.
type Shard struct {
	ID, Parent      string
	Closed          bool
	Settled, Halted bool
}

// Shards lists the shards by id.
func (f *Forest) Shards() []Shard {
	all := make([]Shard, 0, len(f.nodes))
	for _, n := range f.nodes {
		all = append(all, Shard{ID: n.ID, Parent: n.Parent, Closed: n.Closed, Settled: n.settled(), Halted: n.phase == halted})
	}
	slices.SortFunc(all, func(a, b Shard) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Empty reports whether no shard is known.
func (f *Forest) Empty() bool { return len(f.nodes) == 0 }

// Settled reports whether every shard is settled to its end.
func (f *Forest) Settled() bool { return f.Count().Finished == len(f.nodes) }

// Agrees reports whether a merged listing has every known shard, and shows no closed
// shard as open. Otherwise the listing is old or incomplete.
func (f *Forest) Agrees(shards []Listed) bool {
	for n := range maps.Values(f.nodes) {
		if n.missing > 0 {
			return false
		}
	}
	return !f.reopens(shards)
}

// reopens reports whether a merged listing shows a closed shard as open.
func (f *Forest) reopens(shards []Listed) bool {
	return slices.ContainsFunc(shards, func(l Listed) bool { return !l.Closed && f.nodes[l.ID].Closed })
}

// StreamDenied notes that the service does not know the stream any more. No listing
// will follow: denied shards and unknown parents are trimmed.
func (f *Forest) StreamDenied() {
	f.past.partial = false
	for n := range maps.Values(f.nodes) {
		n.parentOver, n.unlisted = true, false
		if n.denied {
			n.missing = Confirmations
		}
	}
}
