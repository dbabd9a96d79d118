package flow

import "github.com/sluicehq/sluice"

// Page is records that share memory, such as those of one answer of the
// service: one of them keeps all of it.
type Page struct {
	Records []sluice.Record
	Bytes   int64 // what they keep in memory together

	// Freed, when it is not nil, is called as that memory is given back, with
	// Bytes in all: in one piece when the last record is settled, or, when
	// only a few are left that wait for a retry, as soon as those are copied
	// out and then as each of the copies is settled. What Close leaves
	// unsettled it gives back, but for what handlers that still run keep: that
	// comes back when they return. Freed must be fast and must not call the
	// flow.
	Freed func(bytes int64)
}

// unknownBytes is the size of a page of which nothing is known but its records.
const unknownBytes = 1 << 62

// recordBytes is what a record takes besides its text and images: itself, its
// strings and its entry.
const recordBytes = 640

// page is the account of a Page. It belongs to the flow's mu.
type page struct {
	place   int   // in Flow.pages
	bytes   int64 // not given back yet
	freed   func(int64)
	left    int      // unsettled entries that are not kept, and one while Submit runs
	kept    []*entry // unsettled entries that are held, or wait behind one
	weight  int64    // of copies of them
	copying bool     // they are being copied out
	copies  int      // how many are
	copied  bool     // all are: the page itself is gone
}

func newPage(p Page) *page { return &page{bytes: p.Bytes, freed: p.Freed, left: 1} }

// give gives n bytes back.
func (p *page) give(n int64) {
	n = min(n, p.bytes)
	p.bytes -= n
	if p.freed != nil && n > 0 {
		p.freed(n)
	}
}

// keep notes that e may stay for long.
func (p *page) keep(e *entry) {
	e.kept, e.slot = true, int32(len(p.kept))
	p.kept = append(p.kept, e)
	p.weight += copyWeight(e.rec)
	p.left--
}

// leave notes that e is settled.
func (p *page) leave(e *entry) {
	if !e.kept {
		p.left--
		return
	}
	last := len(p.kept) - 1
	p.kept[e.slot] = p.kept[last]
	p.kept[e.slot].slot = e.slot
	p.kept[last] = nil
	p.kept = p.kept[:last]
	n := copyWeight(e.rec)
	p.weight -= n
	if e.copied {
		p.copies--
	}
	if p.copied {
		p.give(n)
	}
}

// tidy gives back what nothing needs any more and reports whether that was the
// last of it. When only kept entries are left and copies of them take less
// than half of the page, they are copied out: so a few held records do not pin
// a page, and a page of which most is held is not copied for nothing. One that
// a worker has is copied when it comes back; e is one that has, or nil.
func (p *page) tidy(e *entry) (gone bool) {
	switch {
	case p.left > 0:
		return false
	case len(p.kept) == 0:
		p.give(p.bytes)
		return true
	case p.copied:
		return false
	case p.copying && e != nil:
		p.copyOut(e)
	case !p.copying && 2*p.weight <= p.bytes:
		p.copying = true
		for _, e := range p.kept {
			p.copyOut(e)
		}
	}
	if p.copying && p.copies == len(p.kept) {
		p.copied = true
		p.give(p.bytes - p.weight)
	}
	return false
}

func (p *page) copyOut(e *entry) {
	if !e.busy && !e.copied {
		e.rec, e.copied = e.rec.Clone(), true
		p.copies++
	}
}

// weight is what a record counts in the window.
func weight(rec *sluice.Record) int64 { return int64(max(rec.SizeBytes, len(rec.Raw()))) }

// copyWeight is what a copy of a record takes in memory: its text, its images
// once more, and their indexes.
func copyWeight(rec *sluice.Record) int64 {
	images := len(rec.Keys.Raw()) + len(rec.Old.Raw()) + len(rec.New.Raw())
	return int64(recordBytes + len(rec.Raw()) + images + images/4)
}

// keep notes that e, which a worker has, may stay for long, and with it those
// that wait behind it. held says that it failed: they count apart from the
// window then.
func (f *Flow) keep(e *entry, held bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || e.kept && (e.held || !held) {
		return
	}
	f.keepOne(e, held)
	f.keepBehind(e)
	f.wakeSubmit()
}

// keepBehind keeps what waits behind e: these are few records of many pages. A
// record behind a kept one is always kept itself, and behind a held one held.
// With order ByShard the neighbours wait too. mu is held.
func (f *Flow) keepBehind(e *entry) {
	if f.lanes.order == ByShard {
		return
	}
	held := e.held
	for e = e.next; e != nil && (!e.kept || held && !e.held); e = e.next {
		f.keepOne(e, held)
		f.tidy(e.page, nil)
	}
}

func (f *Flow) keepOne(e *entry, held bool) {
	if !e.kept {
		e.page.keep(e)
	}
	if held && !e.held {
		e.held = true
		f.window.hold(e.bytes)
	}
}

// tidy gives back what p keeps for nothing; e is an entry of it that has come
// back from a worker, or nil. mu is held.
func (f *Flow) tidy(p *page, e *entry) {
	if p.tidy(e) {
		last := len(f.pages) - 1
		f.pages[p.place] = f.pages[last]
		f.pages[p.place].place = p.place
		f.pages[last] = nil
		f.pages = f.pages[:last]
	}
}

// abandon drops what is unsettled, which nobody will start any more, and gives
// its memory back but for what handlers still have. It returns the gates whose
// state has changed by that. mu is held.
func (f *Flow) abandon() (moved []*gate) {
	for e := range f.held { // while the records can be read
		for _, t := range e.tasks {
			if f.leaveGate(t, true, false) {
				moved = append(moved, t.gate)
			}
		}
	}
	for _, p := range f.pages {
		p.left, p.kept = 0, nil
	}
	for _, w := range f.all {
		if w.e != nil {
			w.e.next = nil
			w.e.page.left++
		}
	}
	for i := len(f.pages) - 1; i >= 0; i-- { // from the end: it takes them out
		f.tidy(f.pages[i], nil)
	}
	f.lanes.drop()
	for _, q := range f.queues {
		if q != nil && q.gate != nil {
			q.gate.forget(q)
		}
	}
	clear(f.held)
	f.queues, f.queued = nil, 0
	return moved
}

// late notes that the handler of e is back, for which Close did not wait. mu is
// held.
func (f *Flow) late(e *entry) {
	for _, t := range e.tasks {
		if t.gate != nil && t.state != done {
			t.gate.forsake(e.item())
		}
	}
	e.page.left--
	f.tidy(e.page, nil)
}

// shrink gives back what was made for more records than there are: none. A
// quiet flow is to cost no more than a new one. mu is held.
func (f *Flow) shrink() {
	f.window.shrink()
	f.lanes, f.held = newLanes(f.opts.Order), map[*entry]struct{}{}
	f.all, f.free, f.queues = nil, nil, nil
	if len(f.pages) == 0 { // else Submit is at work
		f.pages = nil
	}
}
