package flow

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestSketchCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 3, 19, 20, 100, 1000, 10_000, 1_000_000} {
		var s, other sketch
		for i := range n {
			hash := rng.Uint64()
			s.add(hash)
			s.add(hash) // again
			if i%2 == 0 {
				other.add(hash)
			}
		}
		s.merge(&other)
		if got := s.count(); got < n*8/10 || got > n*12/10 {
			t.Errorf("%d distinct, counted %d", n, got)
		}
		var small sketch // hashes that differ in their low bits alone
		for i := range n {
			small.add(uint64(i))
		}
		if got := small.count(); got < n*8/10 || got > n*12/10 {
			t.Errorf("%d small hashes, counted %d", n, got)
		}
	}
}

func TestPoisonClock(t *testing.T) {
	var s items
	now := time.Unix(6000, 0)
	// The route works for the whole time: healthy is the time since the begin.
	fail := func(at time.Duration, works bool, successes uint64) failedItem {
		return *s.fail(7, works, at, successes, 0, now.Add(at))
	}
	for _, c := range []struct {
		what      string
		at        time.Duration
		works     bool
		successes uint64
		clock     time.Duration
		attempts  int
	}{
		{"first failure", 0, true, 100, 0, 1},
		{"nothing has succeeded since", time.Minute, true, 100, 0, 1},
		{"others succeed", 3 * time.Minute, true, 150, 2 * time.Minute, 2},
		{"others succeed, with doubt about the route", 4 * time.Minute, false, 151, 3 * time.Minute, 2},
		{"nothing has", 5 * time.Minute, true, 151, 3 * time.Minute, 2},
		{"others succeed again", 6 * time.Minute, true, 152, 4 * time.Minute, 3},
	} {
		got := fail(c.at, c.works, c.successes)
		if got.clock != c.clock || got.attempts != c.attempts || got.first != 100 {
			t.Errorf("%s: clock %v, attempts %d, since %d", c.what, got.clock, got.attempts, got.first)
		}
	}
	s.turn(now.Add(7 * time.Minute))
	s.succeed(7)
	if got := fail(8*time.Minute, true, 200); got.clock != 0 || got.attempts != 1 || got.first != 200 {
		t.Errorf("after a success: %+v", got)
	}
	s.giveUp(7, true)
	if got := fail(9*time.Minute, true, 201); !got.parked || got.clock != 0 { // nobody tried it meanwhile
		t.Errorf("the next change of a parked one: %+v", got)
	}
	s.turn(now.Add(10 * time.Minute))
	s.succeed(7)
	if got := fail(11*time.Minute, true, 202); got.parked {
		t.Errorf("a change succeeded since: %+v", got)
	}
}

// An item that is retried more often than others succeed is not judged later
// than one that is retried seldom.
func TestPoisonClockOfFrequentRetries(t *testing.T) {
	for _, c := range []struct {
		every time.Duration // others succeed
		clock time.Duration // after 10 minutes, but for the last success
	}{
		{time.Second, defaultPoisonAfter},
		{20 * time.Second, defaultPoisonAfter},
		{5 * time.Minute, 2 * mostQuiet}, // for most of the time nobody knows whether the route worked
	} {
		var s items
		var got *failedItem
		now := time.Unix(6000, 0)
		const retry = 400 * time.Millisecond
		for at := time.Duration(0); at <= defaultPoisonAfter+retry; at += retry {
			got = s.fail(7, true, at, uint64(at/c.every), 0, now.Add(at))
		}
		if got.clock > c.clock || got.clock < c.clock-min(c.every, mostQuiet)-retry {
			t.Errorf("others succeed every %v: the clock shows %v after 10 minutes, want %v", c.every, got.clock, c.clock)
		}
	}
}

func TestItemsAreForgotten(t *testing.T) {
	s := items{keep: 2 * time.Hour}
	now := time.Unix(6000, 0)
	s.fail(1, true, 0, 0, 0, now)
	s.fail(2, true, 0, 0, 0, now)
	if s.failing != 2 {
		t.Errorf("%d failing", s.failing)
	}
	s.turn(now.Add(time.Second))
	s.succeed(1)
	if s.failing != 1 || len(s.failed) != 2 {
		t.Errorf("%d failing, %d failed", s.failing, len(s.failed))
	}
	s.turn(now.Add(lookBack + time.Minute))
	if s.failing != 1 || len(s.failed) != 1 || s.failed[2] == nil {
		t.Errorf("%d failing, %d failed: what still fails is remembered, what does not is not", s.failing, len(s.failed))
	}
	later := now.Add(2*time.Hour + time.Minute)
	s.fail(4, true, 0, 0, 0, later)
	if s.turn(later.Add(time.Minute)); s.failing != 1 || s.failed[2] != nil {
		t.Errorf("%d failing: what is not tried any more is forgotten at last", s.failing)
	}
	s.giveUp(4, false)
	s.giveUp(4, false)
	s.giveUp(3, false)
	if s.failing != 0 {
		t.Errorf("%d failing", s.failing)
	}
	for hash := range uint64(maxItems + 10) {
		s.fail(hash, true, 0, 0, 0, now.Add(lookBack))
	}
	if len(s.failed) > maxItems {
		t.Errorf("%d items are remembered", len(s.failed))
	}
}

func TestSuccessesOfTheLastMinutes(t *testing.T) {
	var s items
	now := time.Unix(6000, 0)
	for i := range uint64(30) { // 500 items a minute
		for j := range uint64(500) {
			s.turn(now.Add(time.Duration(i) * time.Minute))
			s.succeed(i*500 + j)
		}
	}
	now = now.Add(29 * time.Minute)
	if got := s.tolerated(now); got < 8 || got > 12 {
		t.Errorf("%d tolerated of about 5,000", got)
	}
	now = now.Add(time.Hour)
	s.turn(now)
	if got := s.tolerated(now); got != failingAlways {
		t.Errorf("%d tolerated after an hour without any", got)
	}
	s.parks[s.minute%lookBackMinutes] = 5
	if s.turn(now.Add(9 * time.Minute)); s.parkedLately() != 5 {
		t.Error("forgot what was parked 9 minutes ago")
	}
	if s.turn(now.Add(10 * time.Minute)); s.parkedLately() != 0 {
		t.Error("remembers what was parked 10 minutes ago")
	}
}
