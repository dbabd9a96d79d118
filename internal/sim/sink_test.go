package sim

import (
	"errors"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
)

var errFull = errors.New("too many calls at a time, as it is told to say")

// sink is what the handlers of a route call. There is one for all lives, as
// there is of a service.
type sink struct {
	mu        sync.Mutex
	downUntil time.Time            // it fails for everything
	someUntil time.Time            // it fails for some items
	some      func(string) bool    // for these
	bad       map[string]time.Time // until when it fails for an item

	fullUntil time.Time // it refuses calls above room
	room      int
	says      bool // that it refuses them for load
	takes     time.Duration
	running   int

	accepted, refused int // while it had a room
}

// healed ends all that it was told to do wrong.
func (s *sink) healed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.downUntil, s.someUntil, s.fullUntil, s.bad = time.Time{}, time.Time{}, time.Time{}, nil
	s.accepted, s.refused = 0, 0
}

func (s *sink) down(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.downUntil = time.Now().Add(d)
}

func (s *sink) failsSome(d time.Duration, some func(item string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.someUntil, s.some = time.Now().Add(d), some
}

func (s *sink) failsFor(item string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bad == nil {
		s.bad = map[string]time.Time{}
	}
	s.bad[item] = time.Now().Add(d)
}

// fills has calls take a while, and refuses those above room; says is whether it
// tells why.
func (s *sink) fills(d time.Duration, room int, takes time.Duration, says bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fullUntil, s.room, s.takes, s.says = time.Now().Add(d), room, takes, says
}

// enter begins a call, which takes a while, or is refused. leave must follow.
func (s *sink) enter() (takes time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running++
	if !time.Now().Before(s.fullUntil) {
		return 0, nil
	}
	if s.running <= s.room {
		s.accepted++
		return s.takes, nil
	}
	s.refused++
	if s.says {
		return 0, sluice.Overloaded(errFull)
	}
	return 0, errFull
}

func (s *sink) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
}

// fails says why a call for an item fails, or "".
func (s *sink) fails(item string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case now.Before(s.downUntil):
		return "fails: outage"
	case now.Before(s.someUntil) && s.some(item):
		return "fails: partial outage"
	case now.Before(s.bad[item]):
		return "fails: item"
	}
	return ""
}

// load returns how many calls it accepted and refused while it had a room.
func (s *sink) load() (accepted, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted, s.refused
}
