package dynamostate

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/state"
)

// Workers with equally many shards may have very different work: then one whose shards
// are busy exchanges some with one whose shards are not. A rate is known after a while
// and changes all the time, so that this happens only between members that stay.

const (
	// calmFor is how long the members must be the same, and a lease must be held, until
	// its work counts. It is also the time from a gift to an exchange.
	calmFor = 5 * time.Minute
	// farApart is the least difference of two members' work that moves a shard, as is
	// half of the smaller one's. A shard of DynamoDB has 1,000 changes a second at most.
	farApart = 100
)

// noteWork keeps the work of owner's leases.
func (s *Store) noteWork(owner string, work func(state.Lease) float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, h := range s.leases {
		if h.Owner == owner {
			h.work = work(h.Lease)
			s.leases[k] = h
		}
	}
}

// loadOf returns what a member with these leases has.
func loadOf(name string, held []heldLease) load {
	work := 0.0
	for _, h := range held {
		work += h.work
	}
	return load{name, len(held), int(work)}
}

// load returns what an own member has, without what it is about to release.
func (s *Store) load(app, owner string) load { return loadOf(owner, s.leasesOf(app, owner)) }

// even plans what an owner that stays gives to others, so that all have equally many
// shards, and then about the same work. loads ends with its own. o is locked.
func (s *Store) even(o *others, app string, loads []load, mine []heldLease) map[string][]state.Lease {
	me := loads[len(loads)-1]
	calm := time.Since(o.began) >= calmFor && time.Since(o.came) >= calmFor && time.Since(o.left) >= calmFor
	gifts := make(map[string][]state.Lease)
	for _, m := range plan(me.name, loads) {
		chosen := mine[:min(m.shards, len(mine))]
		if calm { // the work is to stay, or to become, the same
			to := o.living[m.to]
			chosen = pick(mine, m.shards, float64(me.work-to.work)/2)
		}
		gifts[m.to] = leases(chosen)
		mine = slices.DeleteFunc(slices.Clone(mine), func(h heldLease) bool { return slices.Contains(gifts[m.to], h.Lease) })
	}
	if len(gifts) > 0 || !calm || time.Since(o.gave) < calmFor {
		return gifts
	}
	to, work := exchange(me.name, loads)
	if busy := busiest(mine, work); len(busy) > 0 {
		gifts[to] = leases(busy)
	}
	return gifts
}

// exchange returns to whom me gives work, and how much; "", 0: to nobody. The one with
// the most gives to the one with the least, the second to the last but one, and so on.
func exchange(me string, loads []load) (to string, work float64) {
	loads = slices.SortedFunc(slices.Values(loads), func(a, b load) int {
		return cmp.Or(b.work-a.work, strings.Compare(a.name, b.name))
	})
	for i, l := range loads[:len(loads)/2] {
		other := loads[len(loads)-1-i]
		if apart := l.work - other.work; l.name == me && apart > max(farApart, other.work/2) {
			return other.name, float64(apart) / 2
		}
	}
	return "", 0
}

// busiest returns leases with at most that work together, the busiest first; none if
// they have less than half of it.
func busiest(held []heldLease, work float64) (chosen []heldLease) {
	left := work
	for _, h := range slices.SortedFunc(slices.Values(held), func(a, b heldLease) int { return cmp.Compare(b.work, a.work) }) {
		if h.known() && h.work > 0 && h.work <= left {
			chosen, left = append(chosen, h), left-h.work
		}
	}
	if left > work/2 {
		return nil
	}
	return chosen
}

// pick returns n leases that have about that work together. Of leases that are equally
// good it takes the first, and of those whose work is unknown as few as possible.
func pick(held []heldLease, n int, work float64) (chosen []heldLease) {
	known, unknown := make([]heldLease, 0, len(held)), make([]heldLease, 0, len(held))
	for _, h := range held {
		if h.known() {
			known = append(known, h)
		} else {
			unknown = append(unknown, h)
		}
	}
	for ; n > 0 && len(known) > 0; n-- {
		best := 0
		each := max(0, work) / float64(n)
		for i, h := range known {
			if math.Abs(h.work-each) < math.Abs(known[best].work-each) {
				best = i
			}
		}
		work -= known[best].work
		chosen = append(chosen, known[best])
		known = slices.Delete(known, best, best+1)
	}
	return append(chosen, unknown[:min(n, len(unknown))]...)
}

func (h heldLease) known() bool { return time.Since(h.since) >= calmFor }
