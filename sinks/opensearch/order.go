package opensearch

import (
	"context"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/quorum"
)

// order keeps the lanes. Documents may share a lane: they are then written one
// after another without need.
type order struct {
	mu    sync.Mutex
	lanes map[uint64]*write // first write of each
	most  int               // greatest number of lanes since the map was made
}

// maxLanes limits the memory kept while idle.
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
	c.ready = c.ws // the usual case
	if c.open > 0 {
		c.wake = make(chan struct{}, 1)
		c.ready = slices.DeleteFunc(slices.Clone(c.ws), func(w *write) bool { return w.place != first })
	}
	o.most = max(o.most, len(o.lanes))
}

// ready returns the call's writes that are now first in their lanes. It waits for
// one, and returns none when all are done. When ctx ends, waiting writes end
// unsent with its cause.
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

// join lets the writes that wait behind each of ws go with it, if allowed and in
// its first commit.
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
			w.place = away
			if f.line == nil {
				f.line = &line{all: []*write{f}}
			}
			f.line.insert(w)
		}
	}
}

// unlink removes the write behind w from f's lane.
func (f *write) unlink(w *write) {
	gone := w.next
	w.next = gone.next
	gone.next = nil
	if f.last == gone {
		f.last = w
	}
}

// leave ends the first writes of lanes, with or without a commit, and the writes
// that joined them. The next ones become first.
func (o *order) leave(ws []*write) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range ws {
		o.leaveOne(f)
	}
	if len(o.lanes) == 0 && o.most > maxLanes {
		o.lanes, o.most = nil, 0 // because a map never shrinks
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

// leave ends the writes that joined f.
func (l *line) leave(f *write) {
	for _, w := range l.all {
		if w != f {
			w.call.open--
			w.call.awake()
		}
	}
}

// withdraw removes the call's waiting writes from their lanes.
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

// abandon removes the call's remaining writes from their lanes.
func (o *order) abandon(c *call) {
	o.withdraw(c, errEnded)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range c.ws {
		if w.place == first {
			o.leaveOne(w)
		}
	}
}

func (c *call) awake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
