package flow

import (
	"math/rand/v2"
	"time"
)

// The rules of docs/decisions/0009-poison-or-outage.md. Route.Attempts,
// PoisonAfter, Backoff, MaxBackoff and MaxAge change theirs; the others are fixed.
const (
	defaultAttempts    = 8
	defaultPoisonAfter = 10 * time.Minute // an item fails for so long, while its route is healthy
	defaultBackoff     = 100 * time.Millisecond
	defaultMaxBackoff  = 30 * time.Second
	defaultMaxAge      = 20 * time.Hour

	failingAlways   = 3              // so many items may fail without doubt about the route
	failingShare    = 0.002          // and so many of those that succeed
	poisonSuccesses = 20             // calls that succeed meanwhile, at least
	trimAfter       = 24 * time.Hour // DynamoDB keeps a stream's records for so long
	quickSecond     = 8              // the next change of a poisoned item is tried again so many times sooner
	quickRefusals   = 8              // refusals for load whose delay does not grow: the route's limit paces them
)

// history is what is known of a record and its route when a call has failed.
type history struct {
	state State // of the route

	// Of the record's item at this route.
	clock     time.Duration // how long it fails while the route is healthy and succeeds for others
	attempts  int           // failures in that time
	successes uint64        // of the route, for others, since its first failure
	parked    bool          // an earlier change of it was poison, and no change of it has succeeded since
	vouched   bool          // between two failures of this change a call for another began and succeeded

	// Of the route in the last 10 minutes.
	failed    int // distinct items
	tolerated int // as many may fail without doubt about the route

	// Of the record.
	letters bool      // it can be parked
	tries   int       // failures one after another
	expires time.Time // it is parked then; zero: never

	poison      int           // attempts that make poison
	poisonAfter time.Duration // of clock, at least
	backoff     time.Duration
	maxBackoff  time.Duration
}

// kind is what an error says about the record and its route.
type kind uint8

const (
	succeeded  kind = iota
	skipped         // settled; says nothing of the route
	permanent       // the record's own fault; says nothing of the route
	failed          // a plain error: poison, overload or an outage
	overloaded      // what the handler calls refuses for load
	wish            // RetryAfter: come back later; says nothing of the route
)

// action is what follows a call that failed.
type action struct {
	park bool
	// The next try: at a random time up to within from now, or at a time.
	within time.Duration
	at     time.Time
	// poison: the record is parked for it.
	poison bool
	// last: at is when the record expires, so that it is parked then, not tried.
	last bool
}

// decide says what follows a call that failed at now. It is the one place in
// which a poison record is told from a route that does not work.
func decide(h history, k kind, after time.Duration, now time.Time) action {
	old := func(t time.Time) bool { return !h.expires.IsZero() && !t.Before(h.expires) }
	if k == permanent || old(now) {
		return action{park: true}
	}
	if k == failed && after <= 0 && h.isPoison() {
		return action{park: true, poison: true}
	}
	if after > 0 {
		if at := now.Add(after); !old(at) {
			return action{at: at}
		}
		return action{at: h.expires, last: true}
	}
	switch {
	case h.state == Outage:
		return action{at: now} // the route paces its probes
	case k == overloaded:
		return action{within: doubled(h.backoff, h.maxBackoff, max(0, h.tries-quickRefusals))}
	case h.parked:
		return action{within: doubled(h.backoff/quickSecond, h.maxBackoff, h.tries)}
	}
	return action{within: doubled(h.backoff, h.maxBackoff, h.tries)}
}

// isPoison reports whether the record's item fails and the route does not. Once a
// change of the item was poison, the next needs less proof: else an item that
// changes often would keep its lane for ever. A single failure proves nothing: the
// route may have failed at that moment.
func (h history) isPoison() bool {
	return h.letters && h.state.Healthy() && h.failed <= h.tolerated &&
		(h.parked && h.vouched || h.successes >= poisonSuccesses && h.clock >= h.poisonAfter && h.attempts >= h.poison)
}

// tolerated is how many distinct items may fail beside so many that succeed
// without doubt about the route.
func tolerated(succeed int) int {
	if succeed < poisonSuccesses {
		return failingAlways
	}
	return max(failingAlways, int(failingShare*float64(succeed)))
}

// expiry is when a record that waits or fails at now is parked for its age,
// rather than lost to the trim. One that is about that old already, after a
// long standstill, is retried for half of the time that is left all the same,
// though not for more than an eighth of maxAge.
func expiry(created, now time.Time, live bool, maxAge time.Duration) time.Time {
	at := created.Add(maxAge)
	if live {
		left := created.Add(trimAfter).Sub(now)
		if retry := now.Add(min(left/2, maxAge/8)); retry.After(at) {
			at = retry
		}
	}
	return at
}

// jittered is a random time up to limit: full jitter keeps retries apart.
func jittered(limit time.Duration) time.Duration { return rand.N(limit + 1) }

// doubled is base doubled n times, at most limit.
func doubled(base, limit time.Duration, n int) time.Duration {
	if n > 62 || base > limit>>n {
		return limit
	}
	return base << n
}
