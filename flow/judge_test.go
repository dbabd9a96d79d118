package flow

import (
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	// poison fails while everything else works.
	poison := history{
		clock: defaultPoisonAfter, poisonAfter: defaultPoisonAfter, attempts: 8, successes: poisonSuccesses, failed: failingAlways, tolerated: failingAlways,
		poison: 8, letters: true, backoff: defaultBackoff, maxBackoff: defaultMaxBackoff, expires: now.Add(time.Hour),
	}
	with := func(change func(h *history)) history {
		h := poison
		change(&h)
		return h
	}
	retry := action{within: defaultBackoff}
	park := action{park: true}
	for _, c := range []struct {
		name  string
		h     history
		k     kind
		after time.Duration
		want  action
	}{
		{name: "poison", h: poison, k: failed, want: action{park: true, poison: true}},
		{name: "permanent", h: history{}, k: permanent, want: park},
		{name: "too old", h: history{expires: now}, k: failed, want: park},
		{name: "too old, overloaded", h: history{expires: now}, k: overloaded, want: park},
		{name: "too old, with a wish", h: history{expires: now}, k: wish, after: time.Minute, want: park},

		{name: "poison, and no dead letters", h: with(func(h *history) { h.letters = false }), k: failed, want: retry},
		{name: "not for long enough", h: with(func(h *history) { h.clock-- }), k: failed, want: retry},
		{name: "not often enough", h: with(func(h *history) { h.attempts-- }), k: failed, want: retry},
		{name: "attempts of the route's own", h: with(func(h *history) { h.attempts, h.poison = 2, 2 }), k: failed, want: action{park: true, poison: true}},
		{name: "too few others succeed", h: with(func(h *history) { h.successes-- }), k: failed, want: retry},
		{name: "too many others fail", h: with(func(h *history) { h.failed++ }), k: failed, want: retry},
		{name: "many fail, and many more succeed", h: with(func(h *history) { h.failed, h.tolerated = 20, 20 }), k: failed, want: action{park: true, poison: true}},
		{name: "overloaded route", h: with(func(h *history) { h.state = Overloaded }), k: failed, want: action{park: true, poison: true}},
		{name: "partial outage", h: with(func(h *history) { h.state = Partial }), k: failed, want: retry},
		{name: "recovering", h: with(func(h *history) { h.state = Recovering }), k: failed, want: retry},
		{name: "outage: the route paces it", h: with(func(h *history) { h.state = Outage }), k: failed, want: action{at: now}},
		{name: "refused for load", h: poison, k: overloaded, want: retry},
		{name: "asks for later", h: poison, k: wish, after: time.Minute, want: action{at: now.Add(time.Minute)}},
		{name: "refused for load, with a time", h: poison, k: overloaded, after: time.Minute, want: action{at: now.Add(time.Minute)}},
		{name: "a wish in an outage", h: with(func(h *history) { h.state = Outage }), k: wish, after: time.Minute, want: action{at: now.Add(time.Minute)}},
		{name: "asks for too late", h: poison, k: wish, after: time.Hour, want: action{at: now.Add(time.Hour), last: true}},
		{name: "asks for later, never too old", h: with(func(h *history) { h.expires = time.Time{} }), k: wish, after: 100 * time.Hour, want: action{at: now.Add(100 * time.Hour)}},

		{name: "the next change of a poisoned item fails once", h: with(func(h *history) { h.parked, h.clock = true, 0 }), k: failed, want: action{within: defaultBackoff / quickSecond}},
		{name: "and again, with a success of another in between", h: with(func(h *history) { h.parked, h.vouched, h.clock, h.attempts, h.successes = true, true, 0, 0, 1 }), k: failed, want: action{park: true, poison: true}},
		{name: "and again, in an outage", h: with(func(h *history) { h.parked, h.vouched, h.state = true, true, Outage }), k: failed, want: action{at: now}},
		{name: "and again, while too many others fail", h: with(func(h *history) { h.parked, h.vouched, h.failed = true, true, 4 }), k: failed, want: action{within: defaultBackoff / quickSecond}},

		{name: "the delay doubles", h: history{tries: 3, backoff: defaultBackoff, maxBackoff: defaultMaxBackoff}, k: failed, want: action{within: 800 * time.Millisecond}},
		{name: "up to its limit", h: history{tries: 30, backoff: defaultBackoff, maxBackoff: defaultMaxBackoff}, k: failed, want: action{within: defaultMaxBackoff}},
		{name: "that of a refusal does not, at first", h: history{tries: quickRefusals, backoff: defaultBackoff, maxBackoff: defaultMaxBackoff}, k: overloaded, want: retry},
		{name: "and then does", h: history{tries: quickRefusals + 1, backoff: defaultBackoff, maxBackoff: defaultMaxBackoff}, k: overloaded, want: action{within: 2 * defaultBackoff}},
	} {
		if got := decide(c.h, c.k, c.after, now); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestTolerated(t *testing.T) {
	for succeed, want := range map[int]int{0: 3, 19: 3, 1000: 3, 2000: 4, 100_000: 200} {
		if got := tolerated(succeed); got != want {
			t.Errorf("tolerated(%d) = %d, want %d", succeed, got, want)
		}
	}
}

func TestExpiry(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name        string
		age, maxAge time.Duration
		live        bool
		want        time.Duration // from now
	}{
		{"new", 0, defaultMaxAge, true, defaultMaxAge},
		{"read a little late", 19 * time.Hour, defaultMaxAge, true, 2*time.Hour + 30*time.Minute},
		{"old", 20*time.Hour + 30*time.Minute, defaultMaxAge, true, time.Hour + 45*time.Minute},
		{"nearly lost", 24*time.Hour - 6*time.Minute, defaultMaxAge, true, 3 * time.Minute},
		{"lost by now", 25 * time.Hour, defaultMaxAge, true, -30 * time.Minute},
		{"what cannot be lost", 30 * time.Hour, defaultMaxAge, false, -10 * time.Hour},
		{"a short age of its own", 0, 10 * time.Minute, true, 10 * time.Minute},
		{"older than that", time.Hour, 10 * time.Minute, true, 75 * time.Second},
	} {
		if got := expiry(now.Add(-c.age), now, c.live, c.maxAge).Sub(now); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
