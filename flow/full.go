package flow

import (
	"fmt"
	"time"
)

// Full returns the budget that Submit waits for, and since when: the window, held
// records (HeldBytes), or records settled past a held record (MaxAhead). A zero
// since means that Submit does not wait. It is safe for concurrent use.
func (f *Flow) Full() (why string, since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.awaited {
		return "", time.Time{}
	}
	return f.window.full(f.awaitedBytes), f.awaitedAt
}

// full returns the reason why a record of n bytes does not fit.
func (w *window) full(n int64) string {
	switch {
	case w.held > 0 && w.heldBytes > w.maxHeld:
		return fmt.Sprintf("%d records that failed, or wait behind one that did, take more than the %d bytes of HeldBytes", w.held, w.maxHeld)
	case w.high-w.low > w.maxAhead:
		return fmt.Sprintf("more records than the %d of MaxAhead follow one that is not settled", w.maxAhead)
	case w.records >= w.maxRecords:
		return fmt.Sprintf("the %d records of Window are not settled", w.maxRecords)
	case w.bytes+n > w.maxBytes:
		return fmt.Sprintf("the %d bytes of WindowBytes are taken by records that are not settled", w.maxBytes)
	}
	return "the records of the window are not settled" // one record would fit, but Submit sleeps until more do
}
