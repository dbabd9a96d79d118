package flow

import (
	"time"

	"github.com/sluicehq/sluice"
)

// entry is a submitted record until it is settled. The worker that runs it
// owns it; what others read is changed under the flow's mutex.
type entry struct {
	rec   *sluice.Record
	next  *entry // behind it in its lane
	link  *entry // behind it in the ready list, or in the free list
	ord   uint64
	lane  uint64
	hash  uint64 // of the item's keys
	bytes int64
	at    time.Time // when it was submitted
	tasks []*task   // routes that did not succeed at once; nil when there is none
	page  *page
	slot  int32 // in page.kept
	open  int32 // tasks that are not done

	alone  bool  // its keys cannot be read: no other record is known to be of its item
	task   *task // that a worker has been given; nil in a first pass
	kept   bool  // may stay for long: to be copied out of its page
	copied bool  // it was
	busy   bool  // a worker has it
	held   bool  // counts among what is held, not in the window: it failed, or waits behind one that did
	waits  bool  // no worker has it and it is not in the ready list, though it leads its lane
}

// lanes keep the entries of one item in order. A lane is known by its last
// entry; its first one is ready, running or waiting.
type lanes struct {
	order       Order
	last        map[uint64]*entry
	first, tail *entry // the ready list: leaders that may start
	free        *entry
}

func newLanes(o Order) lanes { return lanes{order: o, last: map[uint64]*entry{}} }

// get returns an empty entry. They are made many at a time.
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

// join puts e at the end of its lane and returns the entry before it, or nil.
func (l *lanes) join(e *entry) *entry {
	e.lane = e.hash
	if l.order == ByShard {
		e.lane = 0
	} else if e.alone { // a lane of its own, not in the map
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

// leave removes e, the first of its lane; the one behind it becomes ready.
func (l *lanes) leave(e *entry) {
	switch {
	case e.next != nil:
		l.ready(e.next)
	case !e.alone || l.order == ByShard:
		delete(l.last, e.lane)
	}
}

// ready puts e at the end of the ready list.
func (l *lanes) ready(e *entry) {
	if l.first == nil {
		l.first = e
	} else {
		l.tail.link = e
	}
	l.tail = e
}

// pop takes the first entry below limit from the ready list. Those at or above
// it are dropped: they will never run.
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
