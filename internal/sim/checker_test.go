package sim

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// What must hold in every history.
const (
	propLost      = "lost"      // a change is settled by somebody before a position passes it
	propAhead     = "ahead"     // a position passes nothing that is still being worked on
	propOrder     = "order"     // changes of one item have their effects one after another, in their order
	propChild     = "child"     // no record of a shard before its parent is settled to its end and that is stored
	propDuplicate = "duplicate" // a change is handled again only if it was in flight
	propRest      = "rest"      // when all faults are over everything is settled and stored within a bound
	propStop      = "stop"      // an orderly stop ends in time, and stores all that is settled
	propContent   = "content"   // handlers and store are given what was written
	propPark      = "park"      // nothing is parked but what its handler gives up, poison, and what is old
	propPace      = "pace"      // healthy items, poison, and what a full sink takes are settled within a bound
	propLimit     = "limit"     // a route has no more calls at a time, nor a second, than it is allowed
	propReady     = "ready"     // readiness is proven
	propRun       = "run"       // nothing ends a running poller, and nothing panics
)

// violation is a property that did not hold.
type violation struct {
	Prop string
	Text string
}

func (v violation) String() string { return v.Prop + ": " + v.Text }

// place is a shard of a stream.
type place struct{ arn, id string }

// shard is what the checker knows of one.
type shard struct {
	place
	parent  string
	closed  bool
	changes []*change // in order
	stored  state.Position
	denied  bool              // at some time by the service, that has it
	excused bool              // of a stream that was replaced before the start
	gone    bool              // a gap says that it is, with all that it held
	gaps    []sluice.Sequence // After of those that were reported
	begun   bool
}

// change is one change of one item.
type change struct {
	shard   *shard
	seq     sluice.Sequence
	item    string
	prev    *change // of the item
	next    *change
	at      time.Time // written
	end     time.Time // when a route was done with it last
	routes  []string
	done    map[string]session // handled, or parked for good, by route; the last time
	tries   map[string]int     // calls
	parking int                // the last life that began to store a dead letter of it
	doubt   map[string]bool    // by route: it is parked, and the poller was told that it is not
	excuse  string             // why nobody has to handle it
}

func (c *change) String() string { return fmt.Sprintf("%s of %s at %s", c.seq, c.item, c.shard.id) }

func (c *change) settled() bool { return c.excuse != "" || len(c.done) == len(c.routes) }

// session is one reading of a shard by one life.
type session struct{ life, number int }

// reading is what a session has done.
type reading struct {
	session
	shard  *shard
	busyAt time.Time // when the last record of it was handled
	calls  int       // of handlers, that have not come back
	after  sluice.Sequence
	last   map[string]*change // by item: the newest that was begun
	begun  map[*change]bool
}

// checker knows all that was written, all that was done, and what may follow.
type checker struct {
	trace    *trace
	news     func() []news                            // changes written since the last call
	trimmed  func(p place) func(sluice.Sequence) bool // which records of a shard nobody can read any more
	listed   func(p place) bool                       // whether the service has the shard
	older    func(arn string) []string                // the streams that the table had before
	routesOf func(item string) []string
	mayPark  func(ch *change, route string) bool
	limits   func(route string) limit

	parksItems bool // what is behind a parked change of its item, too

	mu         sync.Mutex
	all        []*change          // in the order in which they were learned
	changes    map[string]*change // by stream ARN and sequence number
	newest     map[string]*change // by item
	shards     map[place]*shard
	readings   map[place]*reading
	busy       map[string]int // life, by item that is being handled
	letters    map[string]letter
	parks      []park
	unlisted   time.Time           // when a listing of dead letters failed last
	endedAt    time.Time           // when the end of a shard was stored last
	gates      map[string]*allowed // by route, of the life that runs
	known      map[string]bool     // streams, by ARN, whose start is stored
	replaced   map[string]bool     // and those of which a gap says that another came after
	violations []violation
}

// news is a change as the service knows it.
type news struct {
	place place
	seq   sluice.Sequence
	item  string
	at    time.Time
}

func newChecker(tr *trace) *checker {
	return &checker{trace: tr, changes: map[string]*change{}, newest: map[string]*change{}, shards: map[place]*shard{},
		readings: map[place]*reading{}, busy: map[string]int{}, letters: map[string]letter{}, gates: map[string]*allowed{}, known: map[string]bool{}, replaced: map[string]bool{}}
}

func (c *checker) violate(prop, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(prop, format, args...)
}

// fail is violate with the lock held.
func (c *checker) fail(prop, format string, args ...any) {
	v := violation{prop, fmt.Sprintf(format, args...)}
	c.trace.add(0, "VIOLATION %s", v)
	c.violations = append(c.violations, v)
}

// failed returns the violations so far.
func (c *checker) failed() []violation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.violations)
}

// shard returns what is known of p; the lock is held.
func (c *checker) shard(p place) *shard {
	s := c.shards[p]
	if s == nil {
		s = &shard{place: p}
		c.shards[p] = s
	}
	return s
}

// topology notes a shard that was made or closed.
func (c *checker) topology(p place, parent string, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shard(p)
	s.parent, s.closed = parent, s.closed || closed
}

// closed notes that a shard was closed.
func (c *checker) closed(p place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shard(p).closed = true
}

// denies notes that the service denies a shard for a while.
func (c *checker) denies(p place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shard(p).denied = true
}

// learn takes in what was written; the lock is held.
func (c *checker) learn() {
	for _, n := range c.news() {
		s := c.shard(n.place)
		ch := &change{shard: s, seq: n.seq, item: n.item, at: n.at, routes: c.routesOf(n.item),
			done: map[string]session{}, tries: map[string]int{}, doubt: map[string]bool{}}
		s.changes = append(s.changes, ch)
		c.all = append(c.all, ch)
		c.changes[n.place.arn+" "+string(n.seq)] = ch
		if ch.prev = c.newest[n.item]; ch.prev != nil {
			ch.prev.next = ch
		}
		c.newest[n.item] = ch
	}
}

// find returns the change that a record tells of; the lock is held.
func (c *checker) find(arn string, seq sluice.Sequence) *change {
	key := arn + " " + string(seq)
	if c.changes[key] == nil {
		c.learn()
	}
	return c.changes[key]
}

// started notes that a life begins to read a shard behind after.
func (c *checker) started(life int, p place, after sluice.Sequence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learn()
	s := c.shard(p)
	s.begun = true
	r := &reading{session: session{life: life, number: 1}, shard: s, busyAt: time.Now(), after: after, last: map[string]*change{}, begun: map[*change]bool{}}
	if old := c.readings[p]; old != nil {
		if old.life > life { // the hook of one that was killed meanwhile: a busy machine is slow
			return
		}
		r.number = old.number + 1
	}
	c.readings[p] = r
	if string(after) != s.stored.Sequence {
		c.fail(propContent, "shard %s is read after %q, but stored is %v", p.id, after, s.stored)
	}
}

// left notes that a life is over. After an orderly stop all that its readings
// have settled in a row must be stored.
func (c *checker) left(life int, orderly bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p, r := range c.readings {
		if r.life != life || !orderly {
			continue
		}
		for _, ch := range r.shard.changes {
			if passed(r.shard.stored, ch) || ch.excuse != "" && ch.excuse != beforeStart && !r.begun[ch] {
				continue
			}
			if !ch.settledBy(r.session) { // of one from before the start nobody knows whether it was dropped, or waits
				break
			}
			c.fail(propStop, "an orderly stop did not store that %v is settled: stored of shard %s is %v", ch, p.id, r.shard.stored)
		}
	}
	clear(c.busy)
	clear(c.gates)
}

func (c *change) settledBy(s session) bool {
	for _, route := range c.routes {
		if c.done[route] != s || c.doubt[route] {
			return false
		}
	}
	return true
}

// unrest says what keeps the world from rest, or "".
func (c *checker) unrest() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learn()
	for _, s := range c.shards {
		var last *change // that had to be handled
		for _, ch := range s.changes {
			if !ch.settled() && !c.lost(ch) && !c.buried(s) {
				return fmt.Sprintf("%v is not settled", ch)
			}
			if len(ch.done) > 0 && ch.excuse == "" {
				last = ch
			}
		}
		if s.excused || !c.listed(s.place) {
			continue
		}
		if last != nil && !passed(s.stored, last) {
			return fmt.Sprintf("%v is settled, but stored of shard %s is %v", last, s.id, s.stored)
		}
		if s.closed && !s.stored.Finished {
			return fmt.Sprintf("shard %s is closed, but stored of it is %v", s.id, s.stored)
		}
	}
	return ""
}

// position returns what is stored of a shard.
func (c *checker) position(p place) state.Position {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shard(p).stored
}
