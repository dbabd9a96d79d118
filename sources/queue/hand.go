package queue

import (
	"context"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
)

// message is one that is in hand.
type message struct {
	sluice.Message
	lane string // what runs in order: its group in a FIFO queue, else its id

	// Of the hand's mu.
	state    state
	handle   string        // the latest: SQS takes an older one only sometimes
	taken    time.Time     // when it was received, the last time
	until    time.Time     // it is hidden from others
	renewAt  time.Time     // that is extended
	renewing chan struct{} // closed when an extension that is under way has ended
	told     bool          // that somebody else may have it
}

type state uint8

const (
	waiting   state = iota // behind another of its lane
	running                // its handler is
	settled                // to be deleted
	returning              // its visibility is not extended any more
)

// limit is when SQS shows it again whatever is asked.
func (m *message) limit() time.Time { return m.taken.Add(maxHold - 10*time.Second) }

// hand is what a source has received. It bounds that: a place is reserved for
// each message before it is asked for.
type hand struct {
	mu    sync.Mutex
	size  int
	used  int // places of messages and reservations
	byID  map[string]*message
	lanes map[string][]*message // that wait, of each lane that runs
	moved time.Time             // when a message last left, or came into an empty hand
	freed chan struct{}         // signals a place
}

func newHand(size int) *hand {
	return &hand{size: size, byID: map[string]*message{}, lanes: map[string][]*message{}, freed: make(chan struct{}, 1)}
}

// reserve takes up to most places, at least one, and waits for that. It
// returns 0 when ctx has ended.
func (h *hand) reserve(ctx context.Context, most int) int {
	for ctx.Err() == nil {
		h.mu.Lock()
		n := min(most, h.size-h.used)
		h.used += max(n, 0)
		more := h.used < h.size
		h.mu.Unlock()
		if n > 0 {
			if more {
				h.signal()
			}
			return n
		}
		select {
		case <-h.freed:
		case <-ctx.Done():
		}
	}
	return 0
}

func (h *hand) signal() {
	select {
	case h.freed <- struct{}{}:
	default:
	}
}

func (h *hand) release(n int) {
	if n == 0 {
		return
	}
	h.mu.Lock()
	h.used -= n
	h.mu.Unlock()
	h.signal()
}

// add puts m, for which there is a place, into its lane. It reports whether it
// is new, and whether its lane has to be started. One that is in hand already,
// because SQS delivers some messages twice or because it was not extended in
// time, is not started again: the receipt handle that is valid now is taken
// over.
// h.mu is held over a whole answer: who sees that one came again sees, too,
// what came behind it.
func (h *hand) add(m *message) (added, start bool) {
	if old := h.byID[m.ID]; old != nil {
		old.handle, old.taken, old.until, old.renewAt, old.told = m.handle, m.taken, m.until, m.renewAt, false
		return false, false
	}
	if len(h.byID) == 0 {
		h.moved = time.Now()
	}
	h.byID[m.ID] = m
	waits, runs := h.lanes[m.lane]
	h.lanes[m.lane] = append(waits, m)
	return true, !runs
}

// next takes the next message of a lane to be run; nil ends the lane.
func (h *hand) next(lane string) *message {
	h.mu.Lock()
	defer h.mu.Unlock()
	waits := h.lanes[lane]
	if len(waits) == 0 {
		delete(h.lanes, lane)
		return nil
	}
	m := waits[0]
	h.lanes[lane] = waits[1:]
	m.state = running
	return m
}

// lapsed reports whether somebody else may have m.
func (h *hand) lapsed(m *message) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !time.Now().Before(m.until)
}

// giveUp takes m, which may be nil, and what waits in its lane out of the
// renewals, and returns them, in order. It waits for an extension that is under
// way: it must not come after what is asked for next.
func (h *hand) giveUp(lane string, m *message) (ms []*message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m != nil {
		ms = append(ms, m)
	}
	ms = append(ms, h.lanes[lane]...)
	h.lanes[lane] = nil // its goroutine goes on
	for _, m := range ms {
		m.state = returning
	}
	for _, m := range ms {
		for m.renewing != nil {
			under := m.renewing
			h.mu.Unlock()
			<-under
			h.mu.Lock()
		}
	}
	return ms
}

// end lets m go, unless it has come again with another handle than the one with
// which it was dealt with.
func (h *hand) end(m *message, handle string) bool {
	h.mu.Lock()
	if m.handle != handle {
		h.mu.Unlock()
		return false
	}
	delete(h.byID, m.ID)
	h.used--
	h.moved = time.Now()
	h.mu.Unlock()
	h.signal()
	return true
}

func (h *hand) set(m *message, s state) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m.state = s
}

// lease returns m's handle, until when it is hidden, and the latest time at
// which it can be.
func (h *hand) lease(m *message) (handle string, until, limit time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return m.handle, m.until, m.limit()
}

// look tells what is in hand, and since when nothing of it has come to its end.
func (h *hand) look() (now Hand, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now.Messages = len(h.byID)
	for _, m := range h.byID {
		now.Oldest = max(now.Oldest, time.Since(m.taken))
	}
	return now, h.moved
}
