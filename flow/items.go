package flow

import (
	"math"
	"math/bits"
	"time"
)

const (
	lookBackMinutes = 10
	lookBack        = lookBackMinutes * time.Minute
	maxItems        = 20_000 // limit of remembered failing items; with more, nothing is poison

	// mostQuiet bounds the time between two successes of others that the poison
	// clock counts. It equals the longest backoff.
	mostQuiet = defaultMaxBackoff
)

// failedItem remembers an item that failed in the last 10 minutes. It outlives the
// record: the next change of a poisoned item is judged by the same history.
type failedItem struct {
	last     time.Time     // last failure
	failing  bool          // no success and no giving up since
	parked   bool          // a change was poison, and no change has succeeded since
	clock    time.Duration // see history
	attempts int
	healthy  time.Duration // the route's healthy time at the last failure
	counted  time.Duration // the same, at the last failure that the clock counted
	seen     uint64        // the route's successes at the last failure
	first    uint64        // the same, at the first failure
	began    uint64        // number of the first failure of the current change
}

// items counts distinct items over the last 10 minutes: failed items exactly,
// successful items within a few percent.
type items struct {
	keep time.Duration // a failing item not retried within this time is forgotten: at least 10 minutes

	failed  map[uint64]*failedItem
	failing int // number of items in failed that fail now

	succeeded [lookBackMinutes]sketch
	parks     [lookBackMinutes]int // records parked
	minute    int64                // of the newest count

	bound   int // tolerated failing items
	boundAt time.Time
}

// fail notes a failure of the item at now. healthy, successes and failures are the
// route's.
// It returns nil if too many items fail to remember this one.
func (s *items) fail(hash uint64, works bool, healthy time.Duration, successes, failures uint64, now time.Time) *failedItem {
	it := s.failed[hash]
	switch {
	case it == nil && len(s.failed) >= maxItems:
		return nil
	case it == nil:
		it = &failedItem{}
		if s.failed == nil {
			s.failed = map[uint64]*failedItem{}
		}
		s.failed[hash] = it
		fallthrough
	case it.attempts == 0 && !it.failing: // first failure, or first since a success
		it.first, it.counted = successes, healthy
		if works {
			it.attempts = 1
		}
	case successes != it.seen: // the route works for others
		if it.failing { // else the item was not retried meanwhile
			it.clock += max(healthy-it.healthy, min(healthy-it.counted, mostQuiet))
		}
		it.counted = healthy
		if works {
			it.attempts++
		}
	}
	if !it.failing {
		it.failing, it.began = true, failures
		s.failing++
	}
	it.last, it.healthy, it.seen = now, healthy, successes
	return it
}

// succeed notes a success of the item.
func (s *items) succeed(hash uint64) {
	s.succeeded[s.minute%lookBackMinutes].add(hash)
	if it := s.failed[hash]; it != nil {
		s.rest(it)
		*it = failedItem{last: it.last}
	}
}

// giveUp notes that no flow retries the item. The clock of a poisoned change does
// not count for the next change.
func (s *items) giveUp(hash uint64, poison bool) {
	if it := s.failed[hash]; it != nil {
		s.rest(it)
		if poison {
			*it = failedItem{last: it.last, parked: true}
		}
	}
}

func (s *items) rest(it *failedItem) {
	if it.failing {
		it.failing = false
		s.failing--
	}
}

// turn forgets counts older than 10 minutes. It keeps failing items whose retries
// are less frequent.
func (s *items) turn(now time.Time) {
	minute := now.Unix() / 60
	if minute == s.minute {
		return
	}
	for i := max(s.minute+1, minute-lookBackMinutes+1); i <= minute; i++ {
		s.succeeded[i%lookBackMinutes], s.parks[i%lookBackMinutes] = sketch{}, 0
	}
	s.minute = minute
	for hash, it := range s.failed {
		if age := now.Sub(it.last); age > lookBack && !it.failing || age > max(s.keep, lookBack) {
			s.rest(it)
			delete(s.failed, hash)
		}
	}
}

// tolerated is the number of items that may fail while the route counts as
// working. It is recomputed once a second.
func (s *items) tolerated(now time.Time) int {
	if now.Sub(s.boundAt) >= time.Second {
		var all sketch
		for i := range s.succeeded {
			all.merge(&s.succeeded[i])
		}
		s.bound, s.boundAt = tolerated(all.count()), now
	}
	return s.bound
}

// crowded reports whether too many items fail.
func (s *items) crowded(now time.Time) bool {
	return s.failing > failingAlways && s.failing > s.tolerated(now)
}

func (s *items) parkedLately() (n int) {
	for _, p := range s.parks {
		n += p
	}
	return n
}

// sketch counts distinct hashes within about 7 % (HyperLogLog: Flajolet et al.
// 2007, with linear counting for small numbers).
type sketch [256]uint8

func (s *sketch) add(hash uint64) {
	// The finalizer of splitmix64 spreads the hash of the keys over all bits.
	hash = (hash ^ hash>>30) * 0xBF58476D1CE4E5B9
	hash = (hash ^ hash>>27) * 0x94D049BB133111EB
	hash ^= hash >> 31
	i := hash >> 56
	s[i] = max(s[i], uint8(bits.LeadingZeros64(hash<<8|1<<7))+1)
}

func (s *sketch) merge(o *sketch) {
	for i := range s {
		s[i] = max(s[i], o[i])
	}
}

func (s *sketch) count() int {
	const m = float64(len(s))
	sum, zeros := 0.0, 0
	for _, r := range s {
		sum += math.Ldexp(1, -int(r))
		if r == 0 {
			zeros++
		}
	}
	n := 0.7213 / (1 + 1.079/m) * m * m / sum
	if n <= 2.5*m && zeros > 0 {
		n = m * math.Log(m/float64(zeros))
	}
	return int(n + 0.5)
}
