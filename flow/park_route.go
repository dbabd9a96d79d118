package flow

import "time"

// Park parks, as dead letters, the records whose last call of a route failed
// with a plain error: somebody has decided what the flow cannot (see
// [Partial]). parked counts those that wait for a retry: they are parked at
// once. pending counts those whose call runs at the moment: each is parked if
// that call fails, too. Records stay that were never called, that were refused
// for load ([sluice.Overloaded]), and that asked to be called later
// ([sluice.RetryAfter]). RouteState.Parked does not count what Park has parked.
//
// Without a DeadLetter, and once the flow is closed, Park does nothing and
// returns 0, 0. It does not wait for the dead letters. It is safe for concurrent
// use.
func (f *Flow) Park(route string) (parked, pending int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opts.DeadLetter == nil {
		return 0, 0
	}
	for e := range f.held { // none once it is closed
		for _, t := range e.tasks {
			if t.failure.Route != route || !t.failed || t.doomed || t.state == done || e.ord >= f.limit.Load() {
				continue
			}
			if e.busy && e.task == t {
				pending++
			} else {
				parked++
			}
			if t.unwanted = true; t.state == queued {
				f.unqueue(t)
				f.enqueue(t)
			}
		}
	}
	f.start()
	return parked, pending
}

// doom has t parked, not called. mu is held.
func (t *task) doom() { t.doomed, t.tries, t.when = true, 0, time.Time{} }
