package sim

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// What is done and stored, and what of it is allowed.

// attempt notes that a handler is called, and returns how often it was before
// for this change and route. ended must follow.
func (c *checker) attempt(life int, rec *sluice.Record, item, route string) (ch *change, tries int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch = c.find(rec.StreamARN, rec.Sequence)
	if ch == nil || ch.shard.id != rec.ShardID || ch.item != item {
		c.fail(propContent, "a record at %s of shard %s, item %s, was never written there", rec.Sequence, rec.ShardID, item)
		return nil, 0
	}
	tries = ch.tries[route]
	ch.tries[route]++
	c.trace.add(life, "call %d of route %s with %v", tries+1, route, ch)
	if c.busy[item] == life {
		c.fail(propOrder, "%v is handled beside another change of its item", ch)
	}
	c.busy[item] = life
	c.called(route)
	c.inOrder(life, ch, route)
	c.afterParent(ch)
	return ch, tries
}

func (c *checker) inOrder(life int, ch *change, route string) {
	for p := ch.prev; p != nil; p = p.prev {
		if !p.settled() && !c.trimmed(p.shard.place)(p.seq) { // else it is lost, and a gap to be
			c.fail(propOrder, "%v is handled before %v is settled", ch, p)
		}
	}
	_, handled := ch.done[route]
	// What a start at LATEST may leave out may also come, when a restart takes
	// the long way.
	for n := ch.next; n != nil && !handled && ch.excuse == ""; n = n.next {
		if _, ok := n.done[route]; ok {
			c.fail(propOrder, "%v is handled for the first time after %v", ch, n)
		}
	}
	r := c.readings[ch.shard.place]
	if r == nil || r.life != life {
		c.fail(propContent, "%v is handled although its shard is not being read", ch)
		return
	}
	if last := r.last[ch.item]; last != nil && last.seq.Compare(ch.seq) > 0 {
		c.fail(propOrder, "%v is handled after %v", ch, last)
	}
	r.last[ch.item], r.begun[ch], r.busyAt = ch, true, time.Now()
	r.calls++
	switch {
	case handled && ch.done[route] == r.session:
		c.fail(propDuplicate, "%v is handled twice by one reading of its shard", ch)
	case handled && passed(ch.shard.stored, ch):
		c.fail(propDuplicate, "%v is handled again although stored is %v", ch, ch.shard.stored)
	}
}

// afterParent looks whether the parent of ch's shard, and all shards of the
// streams that its table had before, are settled to their end and that is
// stored. What the service does not have any more was trimmed.
func (c *checker) afterParent(ch *change) {
	if ch.shard.parent != "" {
		c.isOver(ch, c.shard(place{ch.shard.arn, ch.shard.parent}))
	}
	older := c.older(ch.shard.arn)
	if len(older) == 0 {
		return
	}
	for p, s := range c.shards {
		if slices.Contains(older, p.arn) && !s.excused {
			c.isOver(ch, s)
		}
	}
}

func (c *checker) isOver(ch *change, p *shard) {
	if p.stored.Finished && !slices.ContainsFunc(p.changes, func(b *change) bool { return !b.settled() }) || !c.listed(p.place) {
		return
	}
	if !p.stored.Finished {
		c.fail(propChild, "%v is handled while stored of shard %s, which comes before, is %v", ch, p.id, p.stored)
	}
	for _, before := range p.changes {
		if !before.settled() {
			c.fail(propChild, "%v is handled before %v", ch, before)
		}
	}
}

// ended notes that a handler has returned. done: its effect is there.
func (c *checker) ended(life int, ch *change, route string, done, late bool, how string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch == nil {
		return
	}
	delete(c.busy, ch.item)
	if r := c.readings[ch.shard.place]; r != nil && r.life == life {
		r.busyAt = time.Now()
		r.calls--
	}
	c.came(route, ch.item, how)
	c.trace.add(life, "route %s with %v: %s", route, ch, how)
	if done {
		c.settle(life, ch, route, late)
	}
}

// settle notes that ch is done for a route; the lock is held. What came late, when
// nobody waited for the call any more, is done by nobody who stores it.
func (c *checker) settle(life int, ch *change, route string, late bool) {
	if !slices.Contains(ch.routes, route) {
		c.fail(propContent, "%v is settled for route %q, which it does not take", ch, route)
		return
	}
	by := session{life: life}
	if r := c.readings[ch.shard.place]; r != nil && r.life == life && !late {
		by, r.busyAt = r.session, time.Now()
	}
	ch.done[route], ch.end = by, time.Now()
}

// parking notes that a life begins to store a dead letter.
func (c *checker) parking(life int, arn string, seq sluice.Sequence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch := c.find(arn, seq); ch != nil {
		ch.parking = life
	}
}

// lettersUnlisted notes that a listing of dead letters failed. No record is called
// before its flow knows whether an earlier change of its item is parked.
func (c *checker) lettersUnlisted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unlisted = time.Now()
}

// parked notes a dead letter that is durable.
func (c *checker) parked(life int, id, arn string, seq sluice.Sequence, route, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := c.find(arn, seq)
	if ch == nil {
		c.fail(propContent, "a dead letter of %s, which was never written", seq)
		return
	}
	c.trace.add(life, "parked %v for route %s", ch, route)
	if of, ok := c.letters[id]; ok && of != (letter{ch, route}) {
		c.fail(propLost, "the dead letter of %v for route %s takes the place of that of %v for route %s", ch, route, of.change, of.route)
	}
	if !c.mayPark(ch, route) && !c.behind(ch, route) {
		c.fail(propPark, "%v is parked for route %s: %s", ch, route, why)
	}
	c.letters[id] = letter{ch, route}
	c.settle(life, ch, route, false)
}

// behind reports whether ch may be parked because an earlier change of its item
// is; the lock is held.
func (c *checker) behind(ch *change, route string) bool {
	if !c.parksItems {
		return false
	}
	for _, l := range c.letters {
		if l.change.item == ch.item && l.change.seq.Compare(ch.seq) != 0 && (l.route == route || l.route == "") {
			return true
		}
	}
	return false
}

// storing looks at a position that is about to be stored.
func (c *checker) storing(life int, p place, pos state.Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learn()
	s := c.shard(p)
	known := pos.Sequence == "" || pos.Sequence == s.stored.Sequence
	for _, ch := range s.changes {
		known = known || string(ch.seq) == pos.Sequence
		if !passed(pos, ch) || ch.settled() || c.lost(ch) {
			continue
		}
		if r := c.readings[p]; r != nil && r.begun[ch] {
			c.fail(propAhead, "position %v of shard %s passes %v, which is not settled", pos, p.id, ch)
		} else {
			c.fail(propLost, "position %v of shard %s passes %v, which nobody handled", pos, p.id, ch)
		}
	}
	if !known {
		c.fail(propContent, "position %v of shard %s is not that of a record", pos, p.id)
	}
	if pos.Finished && !s.closed {
		c.fail(propAhead, "shard %s is stored as finished and is open", p.id)
	}
}

// stored notes a position that is durable.
func (c *checker) stored(life int, p place, pos state.Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shard(p)
	if pos.Finished && pos.Sequence == "" {
		pos.Sequence = s.stored.Sequence
	}
	if pos.Compare(s.stored) < 0 {
		c.fail(propAhead, "the stored position of shard %s goes back from %v to %v", p.id, s.stored, pos)
	}
	if pos.Finished {
		c.endedAt = time.Now()
	}
	if pos != s.stored {
		c.trace.add(life, "stored %s: %v", p.id, pos)
	}
	s.stored = pos
}

func passed(pos state.Position, ch *change) bool {
	return pos.Finished || pos.Sequence != "" && ch.seq.Compare(sluice.Sequence(pos.Sequence)) <= 0
}

// told notes whether the poller learned that a dead letter is durable.
func (c *checker) told(life int, id string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l, ok := c.letters[id]; ok {
		l.change.doubt[l.route] = err != nil
		if err == nil {
			c.parks = append(c.parks, park{life, l.route, time.Now()})
		}
	}
}

// letter is what a dead letter is of.
type letter struct {
	change *change
	route  string
}

// kept looks whether all dead letters are still there.
func (c *checker) kept(ids map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, l := range c.letters {
		if !ids[id] {
			c.fail(propLost, "the dead letter of %v for route %s is no longer there", l.change, l.route)
		}
	}
}
