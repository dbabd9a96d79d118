package flow

import (
	"time"

	"github.com/sluicehq/sluice"
)

// entry is a submitted record that is not settled. The worker that runs the entry
// owns it. The flow's mutex guards fields that others read.
type entry struct {
	rec   *sluice.Record
	next  *entry // next in its lane
	link  *entry // next in the ready list or the free list
	ord   uint64
	lane  uint64
	hash  uint64 // of the item's keys
	bytes int64
	at    time.Time // when it was submitted
	tasks []*task   // routes that did not succeed at once; nil if none
	page  *page
	trace RecordTrace // nil without Hooks.Tracer, and before the first call
	slot  int32       // in page.kept
	open  int32       // unfinished tasks

	alone  bool  // its keys cannot be read, so it has no lane with others
	task   *task // assigned to a worker; nil in a first pass
	kept   bool  // may stay long: to be copied out of its page
	copied bool  // copied out of its page
	busy   bool  // a worker has it
	held   bool  // counts as held, not in the window: it or a record before it failed
	waits  bool  // leads its lane, but has no worker and is not in the ready list
}

// lanes keep the entries of one item in order. The map finds a lane by its last
// entry. The first entry is ready, running or waiting.
type lanes struct {
	order       Order
	last        map[uint64]*entry
	first, tail *entry // the ready list: leaders that may start
	free        *entry
}

func newLanes(o Order) lanes { return lanes{order: o, last: map[uint64]*entry{}} }

// get returns an empty entry. It allocates many at a time.
func (l *lanes) get(want int) *entry {
	if l.free == nil {
		fresh := make([]entry, min(max(want, 1), 256))
		for i := range fresh {
			l.put(&fresh[i])
		}
	}
	e := l.free
	l.free = e.link
	e.link = nil
	return e
}

func (l *lanes) put(e *entry) {
	*e = entry{link: l.free}
	l.free = e
}

// drop forgets all entries.
func (l *lanes) drop() {
	clear(l.last)
	l.first, l.tail, l.free = nil, nil, nil
}

// join appends e to its lane and returns the entry before it, or nil.
func (l *lanes) join(e *entry) *entry {
	e.lane = e.hash
	if l.order == ByShard {
		e.lane = 0
	} else if e.alone { // a lane without others, not in the map
		l.ready(e)
		return nil
	}
	before := l.last[e.lane]
	l.last[e.lane] = e
	if before == nil {
		l.ready(e)
		return nil
	}
	before.next = e
	return before
}

// leave removes e, the first of its lane. The next entry becomes ready.
func (l *lanes) leave(e *entry) {
	switch {
	case e.next != nil:
		l.ready(e.next)
	case !e.alone || l.order == ByShard:
		delete(l.last, e.lane)
	}
}

// ready appends e to the ready list.
func (l *lanes) ready(e *entry) {
	if l.first == nil {
		l.first = e
	} else {
		l.tail.link = e
	}
	l.tail = e
}

// pop takes the first entry below limit from the ready list. It drops entries at
// or above limit: they will never run.
func (l *lanes) pop(limit uint64) *entry {
	for e := l.first; e != nil; e = l.first {
		l.first = e.link
		e.link = nil
		if l.first == nil {
			l.tail = nil
		}
		if e.ord < limit {
			return e
		}
	}
	return nil
}
