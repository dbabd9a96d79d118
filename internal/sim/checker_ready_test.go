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

// parkedWithin counts what a life parked lately for a route; the lock is held.
func (c *checker) parkedWithin(life int, route string, d time.Duration) (n int) {
	for _, p := range c.parks {
		if p.life == life && p.route == route && time.Since(p.at) < d {
			n++
		}
	}
	return n
}

// unexcused leaves out of a life's reasons for not being ready that it parked
// many records, when it did: that is over 10 minutes later, and nothing that
// rest has to wait for.
func (c *checker) unexcused(life int, reasons []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(reasons), func(reason string) bool {
		for _, route := range routeNames {
			if n := c.parkedWithin(life, route, 10*time.Minute); n > parkedAtMost && strings.HasPrefix(reason, fmt.Sprintf("route %q had %d records parked", route, n)) {
				return true
			}
		}
		return false
	})
}
