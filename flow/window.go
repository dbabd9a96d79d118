package flow

// window counts unsettled records and keeps the watermark. Ordinals start at 1.
// done is a growing ring with one bit per ordinal in (low, high].
type window struct {
	maxRecords int
	maxBytes   int64
	maxAhead   uint64
	maxHeld    int64

	low, high uint64 // watermark; last assigned ordinal
	records   int    // unsettled records that are not held
	bytes     int64  // of these records
	held      int    // unsettled records that failed or wait behind a failed one
	heldBytes int64  // of the held records
	done      []uint64
}

const firstBits = 1024

func newWindow(o Options) window {
	w := window{
		maxRecords: o.Window,
		maxBytes:   o.WindowBytes,
		maxAhead:   uint64(o.MaxAhead),
		maxHeld:    o.HeldBytes,
	}
	w.shrink()
	return w
}

// shrink resets the ring to its first size. No record is unsettled.
func (w *window) shrink() { w.done = make([]uint64, firstBits/64) }

// fits reports whether the window has room for a record of n bytes. One record
// always fits. Held records take no room, up to HeldBytes. Every ordinal past the
// watermark counts for maxAhead, so the records settled past it never exceed
// maxAhead.
func (w *window) fits(n int64) bool {
	if w.high-w.low > w.maxAhead || w.held > 0 && w.heldBytes > w.maxHeld {
		return w.empty()
	}
	return w.records == 0 || w.records < w.maxRecords && w.bytes+n <= w.maxBytes
}

// empty reports whether no record is unsettled.
func (w *window) empty() bool { return w.records+w.held == 0 }

// hold notes that a record of n bytes in the window is held.
func (w *window) hold(n int64) {
	w.records--
	w.bytes -= n
	w.held++
	w.heldBytes += n + recordBytes
}

// roomy reports whether an eighth of the window is free.
func (w *window) roomy() bool {
	return w.records <= w.maxRecords-w.maxRecords/8 && w.bytes <= w.maxBytes-w.maxBytes/8
}

// add assigns the next ordinal.
func (w *window) add(n int64) uint64 {
	if w.high-w.low == uint64(len(w.done))*64 {
		w.grow()
	}
	w.records++
	w.bytes += n
	w.high++
	return w.high
}

func (w *window) grow() {
	old := w.done
	w.done = make([]uint64, 2*len(old))
	for ord := w.low + 1; ord <= w.high; ord++ {
		word, bit := place(old, ord)
		if old[word]&bit != 0 {
			word, bit = place(w.done, ord)
			w.done[word] |= bit
		}
	}
}

// settle marks ord as settled and reports whether the watermark moved.
func (w *window) settle(ord uint64, n int64, held bool) bool {
	if held {
		w.held--
		w.heldBytes -= n + recordBytes
	} else {
		w.records--
		w.bytes -= n
	}
	if ord != w.low+1 {
		word, bit := place(w.done, ord)
		w.done[word] |= bit
		return false
	}
	w.low++
	for w.low < w.high {
		word, bit := place(w.done, w.low+1)
		if w.done[word]&bit == 0 {
			break
		}
		w.done[word] &^= bit
		w.low++
	}
	return true
}

// unsettled returns the ordinals of the unsettled records up to submitted: the last
// one, or the one before there are more than most.
func (w *window) unsettled(most int) (all []uint64, submitted uint64) {
	for ord := w.low + 1; ord <= w.high; ord++ {
		if word, bit := place(w.done, ord); w.done[word]&bit != 0 {
			continue
		}
		if len(all) == most {
			return all, ord - 1
		}
		all = append(all, ord)
	}
	return all, w.high
}

func place(ring []uint64, ord uint64) (word int, bit uint64) {
	i := ord & (uint64(len(ring))*64 - 1)
	return int(i / 64), 1 << (i % 64)
}
