package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// What readiness says, held against what is known.

// park is a dead letter of which a life knows that it is durable.
type park struct {
	life  int
	route string
	at    time.Time
}

// Somebody is to look at a route when more than parkedAtMost of its records were
// parked in the last 10 minutes, which are counted in whole ones.
const parkedAtMost = 20

// parkedWithin counts what a process, from its first life on, parked lately for a route;
// the lock is held.
func (c *checker) parkedWithin(first int, route string, d time.Duration) (n int) {
	for _, p := range c.parks {
		if p.life >= first && p.route == route && time.Since(p.at) < d {
			n++
		}
	}
	return n
}

// unexcused leaves out of a process's reasons for not being ready that it parked
// many records, when it did: that is over 10 minutes later, and nothing that
// rest has to wait for.
func (c *checker) unexcused(first int, reasons []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(reasons), func(reason string) bool {
		var route string
		var n int
		if _, err := fmt.Sscanf(reason, "route %q had %d records parked", &route, &n); err != nil {
			return false
		}
		return n > parkedAtMost && c.parkedWithin(first, route, 9*time.Minute) <= n && n <= c.parkedWithin(first, route, 10*time.Minute)
	})
}

// open counts the changes that are not settled, though they can be read.
func (c *checker) open() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learn()
	for _, ch := range c.all {
		if !ch.settled() && !c.buried(ch.shard) {
			n++
		}
	}
	return n
}

// paced looks how long the changes of items whose names begin with prefix took,
// or take: those of the last minute.
func (c *checker) paced(prefix string, bound time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learn()
	for i := len(c.all) - 1; i >= 0; i-- {
		ch := c.all[i]
		if time.Since(ch.at) > time.Minute {
			return
		}
		_, name, _ := strings.Cut(ch.item, "/")
		took := time.Since(ch.at)
		if ch.settled() {
			took = ch.end.Sub(ch.at)
		}
		if strings.HasPrefix(name, prefix) && ch.excuse == "" && took > bound {
			c.fail(propPace, "%v takes %v and more, at most %v is allowed", ch, took, bound)
			return
		}
	}
}

// allowed follows what one life calls a route.
type allowed struct {
	running int
	used    float64 // of the calls that may come together
	at      time.Time

	failing map[string]time.Time // items whose last call failed, and since when

	// Since the last success.
	failures int
	items    map[string]bool
	since    time.Time // the first failure
	outage   time.Time // since when they are one; zero: they are not
}

func (c *checker) gateOf(route string) *allowed {
	a := c.gates[route]
	if a == nil {
		a = &allowed{at: time.Now(), failing: map[string]time.Time{}}
		c.gates[route] = a
	}
	return a
}

// called notes that a route is called; the lock is held.
func (c *checker) called(route string) {
	a, l := c.gateOf(route), c.limits(route)
	a.running++
	if l.concurrency > 0 && a.running > l.concurrency {
		c.fail(propLimit, "route %s has %d calls at a time, at most %d are allowed", route, a.running, l.concurrency)
	}
	if l.rate > 0 {
		const rounded = 1e-3
		now := time.Now()
		a.used = max(0, a.used-now.Sub(a.at).Seconds()*l.rate) + 1
		a.at = now
		if most := float64(max(1, l.burst)); a.used > most+rounded {
			c.fail(propLimit, "route %s is %.3f calls ahead of %v a second, at most %v are allowed", route, a.used, l.rate, most)
		}
	}
}

// What makes an outage: so many failures in a row, of so many items, in such a
// time; it is seen sooner when new records fail. Then a moment is left to notice.
const (
	outageFailures = 5
	outageItems    = partialItems + 1
	outageAfter    = time.Minute
	freshAfter     = 2 * time.Second
	moment         = 2 * time.Second
)

// longestBackoff is how long a flow waits at most before it tries a record again.
const longestBackoff = 30 * time.Second

// partialItems is how many items may fail; more make a partial outage.
const partialItems = 3

// came notes how a call came back; the lock is held.
func (c *checker) came(route, item, how string) {
	a := c.gateOf(route)
	a.running--
	switch how {
	case "done":
		delete(a.failing, item)
		if !a.outage.IsZero() { // what failed in it is no partial one
			for other := range a.failing {
				a.failing[other] = time.Now()
			}
		}
		*a = allowed{running: a.running, used: a.used, at: a.at, failing: a.failing}
	case "skipped", "fails for good":
		delete(a.failing, item)
	case "fails: outage", "fails: partial outage", "fails: full", "fails: item", "fails":
		now := time.Now()
		if a.failures == 0 {
			a.since, a.items = now, map[string]bool{}
		}
		a.failures++
		a.items[item] = true
		if _, ok := a.failing[item]; !ok && how != "fails: full" {
			a.failing[item] = now
		}
		if a.failures >= outageFailures && len(a.items) >= outageItems && now.Sub(a.since) >= outageAfter && a.outage.IsZero() {
			a.outage = now
		}
	}
}

// full reports whether a route has as many calls as it is allowed, so that other
// records wait for one to end; the lock is held.
func (c *checker) full() bool {
	for route, a := range c.gates {
		if most := c.limits(route).concurrency; most > 0 && a.running >= most {
			return true
		}
	}
	return false
}

// failingFor counts the items that fail for d and more.
func (a *allowed) failingFor(d time.Duration) (n int) {
	for _, since := range a.failing {
		if time.Since(since) > d {
			n++
		}
	}
	return n
}

// proof is what readiness must prove of a life within which time.
type proof struct {
	life                   int
	since                  time.Time // it lives
	stored, polled, listed time.Duration
	behind                 time.Duration // added for a stream behind another: four listings must agree that it is over, and two may leave a shard out
	room                   bool          // no record has to wait for another, nor for memory
	slots                  int           // calls at a time of one shard; 0: many
}

// unproven says what a life that is ready has not proven, or "". Asked before
// and after Health it must say the same: else it was about to be proven.
func (c *checker) unproven(want proof) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learn()
	now := time.Now()
	for route, a := range c.gates {
		if !a.outage.IsZero() && now.Sub(a.outage) > moment && c.failing(route) > 0 {
			return fmt.Sprintf("route %s fails for all since %v", route, a.since)
		}
		if n := a.failingFor(moment); n > partialItems && c.failing(route) >= n {
			return fmt.Sprintf("route %s fails for %d items and more", route, partialItems+1)
		}
		if n := c.failing(route); n > 0 && !a.since.IsZero() && now.Sub(a.since) > judged+moment {
			return fmt.Sprintf("route %s fails for %d records, and nothing succeeded since %v", route, n, a.since)
		}
		if n := c.parkedWithin(want.life, route, 9*time.Minute); n > parkedAtMost {
			return fmt.Sprintf("route %s had %d records parked", route, n)
		}
	}
	for p, s := range c.shards {
		if s.excused || s.stored.Finished || !c.listed(p) {
			continue
		}
		r := c.readings[p]
		read := r != nil && r.life == want.life
		i := slices.IndexFunc(s.changes, func(ch *change) bool { return !passed(s.stored, ch) })
		if i < 0 || s.changes[i].excuse != "" {
			continue
		}
		ch := s.changes[i]
		listed := want.listed
		if len(c.older(s.arn)) > 0 {
			listed += want.behind
		}
		// A record that was parked behind another without a call was read. So may one
		// be that waits to ask for the dead letters of its item again.
		unread := len(ch.tries) == 0 && ch.parking != want.life && now.Sub(c.unlisted) > longestBackoff+want.polled
		switch {
		case read && ch.settledBy(r.session) && now.Sub(ch.end) > want.stored:
			return fmt.Sprintf("%v is settled since %v and not stored", ch, ch.end)
		case s.denied || !want.room || read && c.full() || ch.prev != nil && !ch.prev.settled():
		case read && unread && now.Sub(ch.at) > want.polled && now.Sub(r.busyAt) > want.polled && (want.slots == 0 || r.calls < want.slots),
			!read && unread && now.Sub(later(ch.at, later(want.since, c.endedAt))) > listed && c.first(s):
			return fmt.Sprintf("%v was written at %v and not read", ch, ch.at)
		}
	}
	return ""
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// failing counts the changes that a route was called with and that are not
// settled; the lock is held.
func (c *checker) failing(route string) (n int) {
	for _, ch := range c.all {
		if _, done := ch.done[route]; !done && ch.excuse == "" && ch.tries[route] > 0 {
			n++
		}
	}
	return n
}

// first reports whether nothing comes before a shard that is not stored to its
// end.
func (c *checker) first(s *shard) bool {
	before := c.older(s.arn)
	for p, o := range c.shards {
		comes := p.arn == s.arn && p.id == s.parent || slices.Contains(before, p.arn)
		if comes && !o.stored.Finished {
			return false
		}
	}
	return true
}
