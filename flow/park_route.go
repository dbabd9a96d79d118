package flow

import "time"

// Park parks the records whose last call of route failed with a plain error. Use
// it when an operator has decided that they are poison (see [Partial]). parked is
// the number of records that waited for a retry; they are parked at once. pending
// is the number of records whose call runs now; each is parked if that call fails
// too. Park spares records that were never called, that were refused for load
// ([sluice.Overloaded]), or that asked for a later call ([sluice.RetryAfter]).
// RouteState.Parked does not count records parked by Park. With dryRun, Park counts
// and changes nothing.
//
// Without a DeadLetter, or on a closed flow, Park returns 0, 0. It does not wait
// for the dead letters. It is safe for concurrent use.
func (f *Flow) Park(route string, dryRun bool) (parked, pending int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opts.DeadLetter == nil {
		return 0, 0
	}
	for e := range f.held { // empty once the flow is closed
		for _, t := range e.tasks {
			if t.failure.Route != route || !t.failed || t.doomed || t.state == done || e.ord >= f.limit.Load() {
				continue
			}
			if e.busy && e.task == t {
				pending++
			} else {
				parked++
			}
			if dryRun {
				continue
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

// doom marks t to be parked instead of called. mu is held.
func (t *task) doom() { t.doomed, t.tries, t.when = true, 0, time.Time{} }
