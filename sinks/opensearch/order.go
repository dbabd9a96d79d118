package opensearch

import (
	"context"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/document"
	"github.com/sluicehq/sluice/internal/quorum"
)

// write is one operation on its way.
//
// Those of one document stand in a lane, in the order of the calls. The first
// goes into a batch. When its request is made, those that wait behind it then
// go with it, and the last of them stands for all (F100); what comes later
// waits until the result is there. So none overtakes another one of its
// document (F099), and a hot document costs one operation a request.
type write struct {
	op   *document.Op
	way  *document.Op // in which op is tried now; nil: as it is
	lane uint64
	call *call

	// Guarded by order.mu until the write has gone into a commit, and again
	// when that has ended.
	place place
	next  *write // behind it in the lane
	last  *write // of the lane; only of its first

	// Of its commits.
	line     *line     // with those that go with it; nil: it is alone
	begun    time.Time // the first
	failed   *failure  // of the last try
	compared int       // times that the document was read to compare sequences
	open     bool      // it has no result, and is for another commit
	answered bool      // err is the result
	err      error
}

// line is a write with those that go with it.
type line struct {
	all  []*write // the latest last
	left int      // those from the beginning that have no result
}

type place uint8

const (
	away    place = iota // in no lane: not yet, or no more
	waiting              // behind others
	first                // of its lane: to be put into a batch, or in one
	joined               // goes with the first, to its end
)

// call is one call of WriteAll: those of its writes that are under way.
type call struct {
	ws    []*write
	open  int           // of ws that are waiting or joined; guarded by order.mu
	ready []*write      // first in their lanes, to be put into a batch; likewise
	wake  chan struct{} // nil when none had to wait
}

// order has the lanes. Documents may share one: they are then written one
// after another without need.
type order struct {
	mu    sync.Mutex
	lanes map[uint64]*write // the first of each
	most  int               // lanes at a time, since the map was made
}

// maxLanes bounds the memory that is kept when nobody writes.
const maxLanes = 1 << 14

var seed = maphash.MakeSeed()

func laneOf(op *document.Op) uint64 {
	h := maphash.String(seed, op.ID) ^ bits.RotateLeft64(maphash.String(seed, op.Index), 1)
	if op.Routing != "" {
		h ^= bits.RotateLeft64(maphash.String(seed, op.Routing), 2)
	}
	return h
}

// enter puts the call's writes into their lanes.
func (o *order) enter(c *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lanes == nil {
		o.lanes = make(map[uint64]*write, len(c.ws))
	}
	for _, w := range c.ws {
		f := o.lanes[w.lane]
		if f == nil {
			o.lanes[w.lane] = w
			w.place, w.last = first, w
			continue
		}
		f.last.next = w
		f.last = w
		w.place = waiting
		c.open++
	}
	c.ready = c.ws // nearly always
	if c.open > 0 {
		c.wake = make(chan struct{}, 1)
		c.ready = slices.DeleteFunc(slices.Clone(c.ws), func(w *write) bool { return w.place != first })
	}
	o.most = max(o.most, len(o.lanes))
}

// ready returns those of the call's writes that have become the first of their
// lanes. It waits until there is one, and returns none when all are done. When
// ctx ends, those that still wait are done, unsent, with its cause.
func (o *order) ready(ctx context.Context, c *call) []*write {
	m := quorum.From(ctx)
	canceled := ctx.Done()
	for {
		o.mu.Lock()
		ready, open := c.ready, c.open
		c.ready = nil
		o.mu.Unlock()
		if len(ready) > 0 || open == 0 {
			return ready
		}
		m.Park()
		select {
		case <-c.wake:
		case <-canceled:
			o.withdraw(c, notSent(ctx))
			canceled = nil
		}
		quorum.Unpark([]*quorum.Member{m})
	}
}

// join has what waits behind each of ws go with it, if it may and this is its
// first commit.
func (o *order) join(ws []*write) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range ws {
		if !f.begun.IsZero() {
			continue
		}
		for f.next != nil && alike(f.op, f.next.op) {
			w := f.next
			f.unlink(f)
			w.place = joined
			if f.line == nil {
				f.line = &line{all: []*write{f}}
			}
			f.line.insert(w)
		}
	}
}

// unlink takes out of f's lane the write behind w.
func (f *write) unlink(w *write) {
	gone := w.next
	w.next = gone.next
	gone.next = nil
	if f.last == gone {
		f.last = w
	}
}

// alike reports whether one of two writes can stand for both: they are of one
// document, and the same rule says which is the later one.
func alike(a, b *document.Op) bool {
	return a.ID == b.ID && a.Index == b.Index && a.Routing == b.Routing && rule(a.Fence) == rule(b.Fence) && a.Fence != document.Unchanged
}

// rule is the fence that stands for all with the same rule.
func rule(f document.Fence) document.Fence {
	if f == document.NewerOrEqual {
		return document.Newer
	}
	return f
}

// insert puts w behind those that it may follow: the last one stands for all.
func (l *line) insert(w *write) {
	at := len(l.all)
	for at > 0 && !follows(w.op, l.all[at-1].op) {
		at--
	}
	l.all = slices.Insert(l.all, at, w)
	l.left = len(l.all)
}

// follows reports whether the cluster would write op, which came later, over
// before.
func follows(op, before *document.Op) bool {
	switch op.Fence {
	case document.Newer:
		return op.Version > before.Version
	case document.NewerOrEqual:
		return op.Version >= before.Version
	case document.Exact:
		return op.Sequence > before.Sequence
	}
	return true
}

// sent is what is sent for the write.
func (w *write) sent() *document.Op {
	if w.way != nil {
		return w.way
	}
	return w.op
}

// leave ends the first writes of lanes, after their commit or instead of it,
// and those that went with them; the next ones become the first.
func (o *order) leave(ws []*write) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range ws {
		o.leaveOne(f)
	}
	if len(o.lanes) == 0 && o.most > maxLanes {
		o.lanes, o.most = nil, 0 // a map never shrinks (F098)
	}
}

func (o *order) leaveOne(f *write) {
	f.place = away
	if f.line != nil {
		f.line.leave(f)
		f.line = nil
	}
	next := f.next
	if next == nil {
		delete(o.lanes, f.lane)
		return
	}
	f.next = nil
	next.last = f.last
	next.place = first
	o.lanes[f.lane] = next
	next.call.open--
	next.call.ready = append(next.call.ready, next)
	next.call.awake()
}

// leave ends those that went with f.
func (l *line) leave(f *write) {
	for _, w := range l.all {
		if w == f {
			continue
		}
		w.place = away
		switch { // its commit was not ended
		case w.answered:
		case f.answered:
			w.err = errEnded
		default:
			w.err = f.err
		}
		w.call.open--
		w.call.awake()
	}
}

// withdraw takes out of their lanes the call's writes that wait.
func (o *order) withdraw(c *call, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range c.ws {
		if w.place != waiting {
			continue
		}
		f := o.lanes[w.lane]
		before := f
		for before.next != w {
			before = before.next
		}
		f.unlink(before)
		w.place, w.err = away, err
		c.open--
	}
}

// abandon takes the call out of all lanes: its goroutine ends before its time.
func (o *order) abandon(c *call, err error) {
	o.withdraw(c, err)
	o.mu.Lock()
	var firsts []*write
	for _, w := range c.ws {
		if w.place == first {
			firsts = append(firsts, w)
		}
	}
	o.mu.Unlock()
	o.leave(firsts)
}

func (c *call) awake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
