package sim

import (
	"fmt"
	"time"
)

// trials are what becomes of a route when nothing else is wrong, for longer than
// the faults before: what it takes to be judged.
var trials = []func(*history){
	(*history).tryCapacity, (*history).tryCapacity, (*history).tryCapacity,
	(*history).tryPartial, (*history).tryPartial, (*history).tryPartial,
	(*history).tryOutage, (*history).tryOutage,
	(*history).tryPoison, (*history).tryMended, (*history).tryAlone, (*history).tryBoth,
}

const (
	// trialBound is what a record of a healthy item takes at most, from its
	// write, while other items fail: to be polled, and a probe of its own should
	// a few failures look like an outage.
	trialBound = 10 * time.Second
	// poisonBound is when a poison record is parked: 10 minutes on its clock, 1
	// until faults from before are forgotten, and retries.
	poisonBound = 15 * time.Minute
	// judged is how soon a failing item may count as poison.
	judged = 10 * time.Minute

	trialItems = 12
)

// try notes a trial and returns the table and the sink that it is about.
func (h *history) try(format string, args ...any) (*table, *sink) {
	h.trace.add(0, "trial: "+format, args...)
	return h.tables[0], h.sinks["a"]
}

// tryCapacity writes more than a sink takes at a time, and then more when it
// takes all: how many calls run must follow it down and up.
func (h *history) tryCapacity() {
	const (
		items, each = 60, 4
		takes       = 100 * time.Millisecond
	)
	room, says := 1<<h.draw.below(4, "trial room"), h.draw.chance(0.5, "trial says")
	t, s := h.try("the sink takes %d calls at a time, and says so: %v", room, says)
	write := func() {
		for i := range items * each {
			h.put(t, fmt.Sprint("t", i%items))
		}
	}
	s.fills(time.Hour, room, takes, says)
	write()
	ideal := items * each * takes / time.Duration(room)
	took := h.settledWithin(2*ideal+trialBound, "a sink that takes %d calls at a time", room)
	accepted, refused := s.load()
	h.trace.add(0, "%d calls accepted and %d refused in %v of %v", accepted, refused, took, ideal)
	if says && refused > accepted {
		h.check.violate(propPace, "%d calls were refused, and said so, for %d that a sink took which takes %d at a time", refused, accepted, room)
	}
	s.fills(time.Hour, 1000, takes, says)
	write()
	took = h.settledWithin(trialBound, "a sink that takes all calls again")
	h.trace.add(0, "settled in %v", took)
	s.healed()
}

// tryOutage has everything fail: it is known soon, few calls are made until it is
// over, and then as many as there is to do.
func (h *history) tryOutage() {
	const (
		d     = time.Minute
		each  = 4
		takes = 100 * time.Millisecond
		known = freshAfter + moment // then
		most  = 4                   // calls a second, with a MaxBackoff of one
	)
	items := 6 + 54*h.draw.below(2, "trial items")
	t, s := h.try("all of %d items fail for %v", items, d)
	s.fills(time.Hour, 1000, takes, false)
	s.down(d)
	for i := range items * each {
		h.put(t, fmt.Sprint("t", i%items))
		if i == 0 { // from the first failure on calls are counted
			time.Sleep(moment)
		}
	}
	time.Sleep(known)
	before, _ := s.load()
	time.Sleep(d - moment - known)
	if calls, _ := s.load(); calls-before > int(d.Seconds())*most {
		h.check.violate(propPace, "%d calls in an outage of %v, at most %d a second are wanted", calls-before, d, most)
	}
	h.settledWithin(trialBound, "an outage that is over")
	s.healed()
}

// settledWithin waits until all is settled.
func (h *history) settledWithin(bound time.Duration, format string, args ...any) time.Duration {
	for start := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		switch took := time.Since(start); {
		case h.check.open() == 0 || len(h.check.failed()) > 0:
			return took
		case took > bound:
			h.check.violate(propPace, "%d changes are not settled after %v with "+format, append([]any{h.check.open(), bound}, args...)...)
			return took
		}
	}
}

// traffic writes healthy items for a while, beside those that fail, and looks
// how long the healthy ones take.
func (h *history) traffic(t *table, d, every time.Duration, fails func(i int)) {
	i := 0
	for start := time.Now(); time.Since(start) < d && len(h.check.failed()) == 0; i++ {
		h.put(t, fmt.Sprint("t", i%trialItems))
		fails(i)
		time.Sleep(every)
		h.check.paced("t", trialBound)
	}
}

// tryPartial has every second item fail for a while.
func (h *history) tryPartial() {
	items := 2 + h.draw.below(20, "trial items")
	t, s := h.try("%d items fail for 2m", items)
	for i := range items {
		s.failsFor(fmt.Sprint(t.name, "/bad", i), 2*time.Minute)
	}
	h.traffic(t, 2*time.Minute, 300*time.Millisecond, func(i int) {
		if i%2 == 0 {
			h.put(t, fmt.Sprint("bad", i/2%items))
		}
	})
}

// tryPoison has an item fail for long, until it is mended.
func (h *history) tryPoison() {
	t, s := h.try("an item is poison")
	item := t.name + "/bad"
	h.poison.Store(&item)
	s.failsFor(item, time.Hour)
	h.put(t, "bad")
	h.traffic(t, poisonBound, time.Second, func(i int) {
		if i%60 == 30 {
			h.put(t, "bad")
		}
	})
	if h.check.open() > 1 { // the last may have been written just now
		h.check.violate(propPace, "poison is not parked after %v", poisonBound)
	}
	s.healed()
	h.settledWithin(trialBound, "a poisoned item that is mended")

	// Nothing is wrong with the changes behind it: a route that fails when they come
	// is no reason to park them.
	h.poison.Store(nil)
	for range 3 {
		s.down(2 * time.Second)
		h.put(t, "bad")
		h.traffic(t, 5*time.Second, time.Second, func(int) {})
	}
}

// tryMended has an item fail for almost as long as poison does.
func (h *history) tryMended() {
	d := judged - h.draw.upTo(4*time.Minute, "trial mended")
	t, s := h.try("an item fails for %v", d)
	s.failsFor(t.name+"/bad", d)
	h.put(t, "bad")
	h.traffic(t, d, time.Second, func(int) {})
}

// tryBoth has an item fail for longer than poison does, for the most part while
// everything fails.
func (h *history) tryBoth() {
	const d = judged - time.Minute
	t, s := h.try("an item fails, and everything for %v of it", d)
	s.failsFor(t.name+"/bad", judged+2*time.Minute)
	h.put(t, "bad")
	s.down(d)
	for range d / time.Second {
		h.put(t, fmt.Sprint("down", h.draw.below(trialItems, "trial down")))
		time.Sleep(time.Second)
	}
	h.traffic(t, 3*time.Minute, time.Second, func(int) {})
}

// tryAlone has an item fail when there are no others: nobody knows whether it or
// the route is at fault.
func (h *history) tryAlone() {
	d := judged + 3*time.Minute
	t, s := h.try("an item fails for %v, alone", d)
	s.failsFor(t.name+"/bad", d)
	h.put(t, "bad")
	time.Sleep(d)
}

// mayPark reports whether a record is parked with reason: for what its handler
// says, for its age, behind another of its item, or as poison. No fault but a
// trial lasts for as long as it takes to be that.
func (h *history) mayPark(ch *change, route string) bool {
	const maxAge, rounded = 20 * time.Hour, time.Second
	if time.Since(ch.at) > maxAge-rounded || h.permanent([]uint64{text(string(ch.seq)), text(route)}) {
		return true
	}
	item := h.poison.Load()
	return item != nil && ch.item == *item
}
