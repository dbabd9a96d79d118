package flow

import (
	"math/rand/v2"
	"time"

	"github.com/sluicehq/sluice/internal/backoff"
)

// The rules of docs/decisions/0009-poison-or-outage.md. Route options override the
// defaults; the other values are fixed.
const (
	defaultAttempts    = 8
	defaultPoisonAfter = 10 * time.Minute // failing time before poison, while the route is healthy
	defaultBackoff     = 100 * time.Millisecond
	defaultMaxBackoff  = 30 * time.Second
	defaultMaxAge      = 20 * time.Hour

	failingAlways   = 3              // this many items may fail without doubt about the route
	failingShare    = 0.002          // and this share of the items that succeed
	poisonSuccesses = 20             // least number of successes for others before poison
	trimAfter       = 24 * time.Hour // retention of a DynamoDB stream
	quickSecond     = 8              // factor by which the next change of a poisoned item is retried sooner
	quickRefusals   = 8              // refusals for load before the delay grows: the route's limit paces them
)

// history is the evidence about a record and its route after a failed call.
type history struct {
	state State // of the route

	// Of the record's item at this route.
	clock     time.Duration // failing time while the route is healthy and succeeds for others
	attempts  int           // failures in that time
	successes uint64        // of the route, for others, since the first failure
	parked    bool          // an earlier change was poison, and no change has succeeded since
	vouched   bool          // between two failures of this change a call for another item began and succeeded

	// Of the route in the last 10 minutes.
	failed    int // distinct items
	tolerated int // items that may fail without doubt about the route

	// Of the record.
	letters bool      // it can be parked
	tries   int       // consecutive failures
	expires time.Time // when it is parked for its age; zero: never

	poison      int           // attempts before poison
	poisonAfter time.Duration // least clock before poison
	backoff     time.Duration
	maxBackoff  time.Duration
}

// kind is the meaning of a handler's result for the record and its route.
type kind uint8

const (
	succeeded  kind = iota
	skipped         // settled; says nothing about the route
	permanent       // the record's own fault; says nothing about the route
	failed          // a plain error: poison, overload or an outage
	overloaded      // the called service refuses for load
	wish            // RetryAfter: says nothing about the route
)

// action is the decision after a failed call.
type action struct {
	park bool
	// The next retry: at a random time within this duration, or at a fixed
	// time.
	within time.Duration
	at     time.Time
	// The record is parked as poison.
	poison bool
	// last: the record expires at this time and is parked then, without a retry.
	last bool
}

// decide returns the action after a call that failed at now. It alone
// distinguishes a poison record from a failing route.
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
	base, tries := h.backoff, h.tries
	switch {
	case h.state == Outage:
		return action{at: now} // the route paces its probes
	case k == overloaded:
		tries -= quickRefusals
	case h.parked:
		base /= quickSecond
	}
	return action{within: backoff.Doubled(base, h.maxBackoff, tries)}
}

// isPoison reports whether the record's item fails while the route works. After
// one poisoned change, the next change needs less proof: otherwise an item that
// changes often would hold its lane for ever. A single failure proves nothing: the
// route may have failed at that moment.
func (h history) isPoison() bool {
	return h.letters && h.state.Healthy() && h.failed <= h.tolerated &&
		(h.parked && h.vouched || h.successes >= poisonSuccesses && h.clock >= h.poisonAfter && h.attempts >= h.poison)
}

// tolerated is the number of distinct items that may fail without doubt about the
// route, when succeed items succeed.
func tolerated(succeed int) int {
	if succeed < poisonSuccesses {
		return failingAlways
	}
	return max(failingAlways, int(failingShare*float64(succeed)))
}

// expiry is the time at which a record that waits or fails at now is parked for
// its age, before the stream trims it. A record that is already that old is
// retried for half of the time left before the trim, at most maxAge/8.
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

// jittered is a random time up to limit (full jitter): it spreads retries.
func jittered(limit time.Duration) time.Duration { return rand.N(limit + 1) }
