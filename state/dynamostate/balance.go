package dynamostate

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

// Shards are never taken from a living owner. Who has more than its share offers the
// rest to those who have less, and releases it for them. Everybody makes the same plan
// from the members' rows, and carries out its own part.

const (
	// settleFor is how long the members must be the same before shards move, so that
	// workers that start together are one change.
	settleFor = 3 * time.Second
	// movingFor is how long members are listed each settleFor after one has come: the
	// plans of others change while they are carried out.
	movingFor = 30 * time.Second
	// replaceFor is how long the others wait after an owner has ended: in a rolling
	// deployment another one comes, and needs a share.
	replaceFor = time.Minute
	// recently is how long a member counts as new, and together is how much older it
	// may be than the youngest: an owner that ends gives its shards to the youngest,
	// whose turn to end comes last in a rolling deployment.
	recently = 5 * time.Minute
	together = 10 * time.Second
	// announceFor is from an offer to the first release: the receiver's heartbeat finds the
	// offer, and its claim waits for the release.
	announceFor = 1250 * time.Millisecond
	// spreadFor is the time from the first release of an offer to the last: nobody reads a
	// shard while it moves, and many moves at once take longer.
	spreadFor = 2 * time.Second
	// giveFor is how long a release may take before its owner plans anew.
	giveFor = 30 * time.Second
	// avoidFor is how long nothing is offered to a member that did not take its offer.
	avoidFor = 10 * time.Minute
	// maxOffers bounds the shards of one offer: a row has 400 KB at most.
	maxOffers = 256
)

// gift is a shard that an own member is about to release, or has released.
type gift struct {
	lease    state.Lease
	to       string
	offered  time.Time
	due      time.Time // its release
	released bool
}

// changes are what one list of members showed that the one before did not.
type changes struct {
	news       bool            // that the others should know
	living     map[string]load // the living members that take shards
	began      time.Time       // the first list
	came, left time.Time       // the last change of living
	share      int             // of each, since a member ended
	gave       time.Time       // the last gift of an own member
}

// compare notes who came and who ended since the last list. It reports whether one ended.
func (o *others) compare(own map[string]bool) (ended bool) {
	before, now := o.living, time.Now()
	if before == nil {
		o.began = now
	}
	o.living = make(map[string]load)
	lost, left := 0, 0
	for name, s := range o.seen {
		if own[name] || s.takes() {
			o.living[name] = load{name, s.stored.Shards, s.stored.Work}
			left += s.stored.Shards
			if _, ok := before[name]; !ok {
				o.came = now
			}
		}
	}
	for name, l := range before {
		if _, ok := o.living[name]; !ok {
			o.left, lost, ended = now, lost+l.shards, true
		}
	}
	if lost > 0 && len(o.living) > 0 {
		o.share = (left + lost + len(o.living) - 1) / len(o.living)
	}
	return ended
}

// takes reports whether a member seems to live and takes shards.
func (s *sighting) takes() bool {
	return s.err == nil && !s.dead() && s.watched < silentAfter && s.stored.Takes
}

// settled reports whether the members are the same for long enough to move shards.
func (o *others) settled() bool {
	return time.Since(o.came) >= settleFor && (o.left.Before(o.came) || time.Since(o.left) >= replaceFor)
}

// load is what a member has.
type load struct {
	name   string
	shards int
	work   int // of all its shards; see Moves
}

// move is a number of shards for a member.
type move struct {
	to     string
	shards int
}

// plan returns what me gives to whom, so that nobody has over one shard more than
// another. A small difference moves nothing.
func plan(me string, loads []load) (moves []move) {
	loads = slices.SortedFunc(slices.Values(loads), func(a, b load) int {
		return cmp.Or(b.shards-a.shards, strings.Compare(a.name, b.name))
	})
	total := 0
	for _, l := range loads {
		total += l.shards
	}
	if len(loads) == 0 || loads[0].shards-loads[len(loads)-1].shards <= max(1, total/len(loads)/10) {
		return nil
	}
	above := make([]int, len(loads)) // shards that each has too many; negative: that it lacks
	for i, l := range loads {
		above[i] = l.shards - total/len(loads)
		if i < total%len(loads) {
			above[i]--
		}
	}
	to := len(loads) - 1
	for i, l := range loads {
		for above[i] > 0 {
			n := min(above[i], -above[to])
			if n > 0 && l.name == me {
				moves = append(moves, move{loads[to].name, n})
			}
			above[i], above[to] = above[i]-n, above[to]+n
			if above[to] >= 0 {
				to--
			}
		}
	}
	return moves
}

// divide returns how n shards go to members, so that they have about equally many.
func divide(n int, loads []load) []move {
	given := make([]int, len(loads))
	for ; n > 0 && len(loads) > 0; n-- {
		least := 0
		for i := range loads {
			if loads[i].shards+given[i] < loads[least].shards+given[least] {
				least = i
			}
		}
		given[least]++
	}
	var moves []move
	for i, l := range loads {
		if given[i] > 0 {
			moves = append(moves, move{l.name, given[i]})
		}
	}
	return moves
}

// Moves returns the leases of owner that it should release now, because others wait for
// the shards. An owner that calls it takes shards from others, too. Call it before the
// first claim and then some times a second, and with leaving once the owner stops: then
// all its shards are for others. It makes requests only when shards are to move.
//
// work returns how much there is to do for a shard: its changes and its KiB, a second.
func (s *Store) Moves(ctx context.Context, owner string, leaving bool, work func(state.Lease) float64) ([]state.Lease, error) {
	s.members.takes.Store(!leaving)
	s.noteWork(owner, work)
	if leaving { // others count this owner out before they count what it offers
		if err := s.Heartbeat(ctx, owner); err != nil {
			return nil, err
		}
	}
	if err := s.pardon(ctx, owner); err != nil {
		return nil, err
	}
	var due []state.Lease
	for _, o := range s.members.of(owner) {
		if ready, waiting := s.gifts(o.app, owner); waiting && !leaving {
			due = append(due, ready...)
			continue
		}
		offered, err := s.offer(ctx, o.app, owner, leaving)
		if err != nil {
			return due, err
		}
		if leaving {
			due = append(due, offered...)
		}
	}
	return due, nil
}

// gifts returns the leases of owner to release now, and whether it has any to release.
func (s *Store) gifts(app, owner string) (ready []state.Lease, waiting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, g := range s.given {
		age := time.Since(g.offered)
		switch {
		case age > giveFor+avoidFor || !g.released && age > giveFor:
			delete(s.given, k)
		case g.released || g.lease.Stream.Application != app || g.lease.Owner != owner:
		default:
			waiting = true
			if !time.Now().Before(g.due) {
				ready = append(ready, g.lease)
			}
		}
	}
	return ready, waiting
}

// offer plans moves from owner to others, tells these, and returns what they get.
func (s *Store) offer(ctx context.Context, app, owner string, leaving bool) (offered []state.Lease, err error) {
	o := s.members.watch(app)
	o.mu.Lock()
	defer o.mu.Unlock()
	defer s.members.tell(ctx, o)
	every := listEvery
	if len(o.living) > 1 && time.Since(o.came) < movingFor {
		every = settleFor
	}
	if o.old(every) {
		if err := s.members.list(ctx, o, app); err != nil {
			return nil, err
		}
	}
	gifts := s.giftsOf(o, app, owner, leaving)
	if len(gifts) == 0 {
		return nil, nil
	}
	if o.old(time.Second) { // decide by what they have now
		if err := s.members.list(ctx, o, app); err != nil {
			return nil, err
		}
		gifts = s.giftsOf(o, app, owner, leaving)
	}
	for _, name := range slices.Sorted(maps.Keys(gifts)) {
		to, leases := o.seen[name], gifts[name][:min(len(gifts[name]), maxOffers)]
		if err := s.members.postOffers(ctx, to, leases); err != nil {
			return offered, err
		}
		if to.takes() {
			s.give(leases, name)
			o.gave = time.Now()
			offered = append(offered, leases...)
		}
	}
	return offered, nil
}

// giftsOf plans: which leases owner gives to whom. o is locked.
func (s *Store) giftsOf(o *others, app, owner string, leaving bool) map[string][]state.Lease {
	offered, _ := s.members.offers(owner, rows.Key{})
	if !leaving && (!o.settled() || offered > 0) {
		return nil
	}
	mine := s.leasesOf(app, owner)
	own := s.members.names(app)
	avoid := s.avoided()
	var loads []load
	youngest := o.began
	for name, l := range o.living {
		if !own[name] && avoid[name].IsZero() {
			loads = append(loads, l)
			if first := o.seen[name].first; first.After(youngest) {
				youngest = first
			}
		}
	}
	if !leaving {
		return s.even(o, app, append(loads, loadOf(owner, mine)), mine)
	}
	if youngest.After(o.began) && time.Since(youngest) < recently {
		loads = slices.DeleteFunc(loads, func(l load) bool { return youngest.Sub(o.seen[l.name].first) > together })
	}
	gifts := make(map[string][]state.Lease)
	for _, m := range divide(len(mine), loads) {
		gifts[m.to], mine = leases(mine[:m.shards]), mine[m.shards:]
	}
	return gifts
}

// leasesOf returns the leases of owner that are not to be released: those first that
// moved least often, then those that are held longest.
func (s *Store) leasesOf(app, owner string) []heldLease {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []heldLease
	for k, h := range s.leases {
		if g, ok := s.given[k]; h.Stream.Application == app && h.Owner == owner && (!ok || g.lease != h.Lease) {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b heldLease) int {
		return cmp.Or(cmp.Compare(a.moves, b.moves), a.since.Compare(b.since), strings.Compare(a.ShardID, b.ShardID))
	})
	return all
}

func leases(held []heldLease) []state.Lease {
	all := make([]state.Lease, len(held))
	for i, h := range held {
		all[i] = h.Lease
	}
	return all
}

// give plans the releases of an offer, in the order that offers of the receiver returns.
func (s *Store) give(leases []state.Lease, to string) {
	leases = slices.SortedFunc(slices.Values(leases), func(a, b state.Lease) int { return strings.Compare(a.ShardID, b.ShardID) })
	now, each := time.Now(), spreadFor/time.Duration(len(leases))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range leases {
		s.given[shardKey(l.Stream, l.ShardID)] = gift{lease: l, to: to, offered: now, due: now.Add(announceFor + each*time.Duration(i))}
	}
}

// avoided returns the members that did not take an offer lately.
func (s *Store) avoided() map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.avoid, func(_ string, since time.Time) bool { return time.Since(since) > avoidFor })
	return maps.Clone(s.avoid)
}

// heldLease is a lease of an own member.
type heldLease struct {
	state.Lease
	since  time.Time
	moves  uint64
	deaths uint64
	first  bool // nobody had the shard before
	work   float64
}

// holds notes a claimed shard of a table's stream. If it was given to another, that one
// did not take it.
func (s *Store) holds(k rows.Key, l state.Lease, begun shard, first bool) {
	s.members.took(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reserved, k)
	if !strings.HasPrefix(l.Stream.ARN, "arn:") {
		return
	}
	if g, ok := s.given[k]; ok && g.released {
		s.avoid[g.to] = time.Now()
	}
	delete(s.given, k)
	s.leases[k] = heldLease{l, time.Now(), begun.moves, begun.deaths, first, 0}
}

// drops notes that a lease is over.
func (s *Store) drops(k rows.Key, l state.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[k].Lease == l {
		delete(s.leases, k)
	}
	if g, ok := s.given[k]; ok && g.lease == l {
		g.released = true
		s.given[k] = g
	}
}

// nextOwner returns for whom a lease is released; empty: for all.
func (s *Store) nextOwner(k rows.Key, l state.Lease) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g, ok := s.given[k]; ok && g.lease == l {
		return g.to
	}
	return ""
}
