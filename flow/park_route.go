package flow

import "time"

// Park parks, as dead letters, the records whose last call of a route failed
// with a plain error: somebody has decided what the flow cannot (see
// [Partial]). It returns how many these are. Records that wait for a retry are
// parked at once. One whose call runs at the moment is parked if that call
// fails, too. Records stay that were never called, that were refused for load
// ([sluice.Overloaded]), and that asked to be called later
// ([sluice.RetryAfter]).
//
// Without a DeadLetter, and once the flow is closed, Park does nothing and
// returns 0. It does not wait for the dead letters. It is safe for concurrent
// use.
func (f *Flow) Park(route string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opts.DeadLetter == nil {
		return 0
	}
	for e := range f.held { // none once it is closed
		for _, t := range e.tasks {
			if t.failure.Route != route || !t.failed || t.doomed || t.state == done || e.ord >= f.limit.Load() {
				continue
			}
			n++
			if t.unwanted = true; t.state == queued {
				f.unqueue(t)
				f.enqueue(t)
			}
		}
	}
	f.start()
	return n
}

// doom has t parked, not called. mu is held.
func (t *task) doom() { t.doomed, t.tries, t.when = true, 0, time.Time{} }
