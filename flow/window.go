package flow

// window counts what is unsettled and keeps the watermark. Ordinals start at
// 1; done has one bit per ordinal in (low, high], in a ring that grows.
type window struct {
	maxRecords int
	maxBytes   int64
	maxAhead   uint64
	maxHeld    int64

	low, high uint64 // watermark; last ordinal given out
	records   int    // unsettled, but for those that are held
	bytes     int64  // of them
	held      int    // unsettled records that failed, or wait behind one that did
	heldBytes int64  // of them
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

// shrink gives the ring its first size again; nothing is unsettled.
func (w *window) shrink() { w.done = make([]uint64, firstBits/64) }

// fits reports whether a record of n bytes may be added. One record always
// fits. What is held takes no room from others, until it is too much. Counting
// all that lies past the lowest unsettled record keeps those that will be settled
// past it below maxAhead, however they end.
func (w *window) fits(n int64) bool {
	if w.high-w.low > w.maxAhead || w.held > 0 && w.heldBytes > w.maxHeld {
		return w.empty()
	}
	return w.records == 0 || w.records < w.maxRecords && w.bytes+n <= w.maxBytes
}

// empty reports whether nothing is unsettled.
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

// add gives out the next ordinal.
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

// settle marks ord and reports whether the watermark moved.
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

func place(ring []uint64, ord uint64) (word int, bit uint64) {
	i := ord & (uint64(len(ring))*64 - 1)
	return int(i / 64), 1 << (i % 64)
}
