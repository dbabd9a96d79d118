package flow

import "github.com/sluicehq/sluice"

// Page is records that share memory, such as the records of one response. Each
// record keeps all of that memory.
type Page struct {
	Records []sluice.Record
	Bytes   int64 // memory of all records together

	// Freed, if not nil, runs as the memory is freed, for Bytes in total. A
	// page is freed in one piece when its last record is settled. If only a few
	// waiting records remain, they are copied out: the page is freed then, and
	// each copy when it is settled. Close frees all unsettled records except
	// those with a running handler, which are freed when the handler returns.
	// Freed must be fast and must not call the flow.
	Freed func(bytes int64)
}

// unknownBytes is the size of a page whose memory is unknown.
const unknownBytes = 1 << 62

// recordBytes is the memory of a record besides its text and images: the struct,
// its strings and its entry.
const recordBytes = 640

// page accounts for the memory of a Page. The flow's mu guards it.
type page struct {
	place   int   // index in Flow.pages
	bytes   int64 // not freed yet
	freed   func(int64)
	left    int       // unsettled entries that are not kept, plus one while Submit runs
	kept    []*entry  // unsettled entries that are held or wait behind a held entry
	weight  int64     // memory of copies of kept
	copying bool      // kept is being copied out
	copies  int       // number of copies
	copied  bool      // all kept entries are copied: the page itself is freed
	trace   PageTrace // nil without Hooks.Tracer
}

func newPage(p Page) *page { return &page{bytes: p.Bytes, freed: p.Freed, left: 1} }

// give frees n bytes.
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

// tidy frees unneeded memory and reports whether the page is fully freed. If only
// kept entries remain and their copies take less than half of the page, it copies
// them out. So a few held records do not pin a page, and a mostly held page is not
// copied. A worker's entry is copied when it returns; e is such an entry, or nil.
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

// weight is the size of a record in the window.
func weight(rec *sluice.Record) int64 { return int64(max(rec.SizeBytes, len(rec.Raw()))) }

// copyWeight is the memory of a copy of a record: its text, its images again, and
// their indexes.
func copyWeight(rec *sluice.Record) int64 {
	images := len(rec.Keys.Raw()) + len(rec.Old.Raw()) + len(rec.New.Raw())
	return int64(recordBytes + len(rec.Raw()) + images + images/4)
}

// keep notes that e, which a worker has, may stay for long, and with it the
// entries behind it. held: e failed, so they no longer count in the window.
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

// keepBehind keeps the entries behind e: a few records of many pages. An entry
// behind a kept entry is kept; an entry behind a held entry is held. With order
// ByShard its neighbours wait too. mu is held.
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

// tidy frees the memory that p no longer needs. e is an entry of p that a worker
// gave back, or nil. mu is held.
func (f *Flow) tidy(p *page, e *entry) {
	if p.tidy(e) {
		last := len(f.pages) - 1
		f.pages[p.place] = f.pages[last]
		f.pages[p.place].place = p.place
		f.pages[last] = nil
		f.pages = f.pages[:last]
	}
}

// abandon drops unsettled entries, because nothing will start them, and frees
// their memory unless a handler uses it. It returns the gates whose state changed,
// and the traces of entries without a handler. mu is held.
func (f *Flow) abandon() (moved []*gate, traces []RecordTrace) {
	for e := range f.held { // while the records are readable
		if !e.busy && e.trace != nil { // else a worker may write trace
			traces = append(traces, e.trace)
		}
		for _, t := range e.tasks {
			f.group.hand(t)
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
	for i := len(f.pages) - 1; i >= 0; i-- { // backwards, because tidy removes pages
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
	return moved, traces
}

// late notes that the handler of e returned after Close. mu is held.
func (f *Flow) late(e *entry) {
	for _, t := range e.tasks {
		if t.gate != nil && t.state != done {
			t.gate.forsake(e.item())
		}
	}
	e.page.left--
	f.tidy(e.page, nil)
}

// shrink frees buffers once the flow is empty. An idle flow must cost no more than
// a new one. mu is held.
func (f *Flow) shrink() {
	f.window.shrink()
	f.lanes, f.held = newLanes(f.opts.Order), map[*entry]struct{}{}
	f.all, f.free, f.queues = nil, nil, nil
	if len(f.pages) == 0 { // else Submit runs
		f.pages = nil
	}
}
