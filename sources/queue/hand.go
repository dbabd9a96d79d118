package queue

import (
	"context"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
)

// message is a message in hand.
type message struct {
	sluice.Message
	lane string // unit of order: the group in a FIFO queue, else the id

	// Guarded by the hand's mu.
	state    state
	handle   string        // the latest: SQS does not always accept an older one
	taken    time.Time     // last receive
	until    time.Time     // end of its visibility timeout
	renewAt  time.Time     // when that is extended
	renewing chan struct{} // closed when a running extension has ended
	told     bool          // another consumer may have it, and that was logged
}

type state uint8

const (
	waiting   state = iota // behind another in its lane
	running                // its handler runs
	settled                // to be deleted
	returning              // its visibility is no longer extended
)

// limit is when SQS shows the message again, whatever is asked.
func (m *message) limit() time.Time { return m.taken.Add(maxHold - 10*time.Second) }

// hand is the received messages of a source, and their limit: a place is reserved
// for each message before it is requested.
type hand struct {
	mu    sync.Mutex
	size  int
	used  int // places of messages and reservations
	byID  map[string]*message
	lanes map[string][]*message // waiting messages of each running lane
	moved time.Time             // when a message last left, or came into an empty hand
	freed chan struct{}         // signals a free place
}

func newHand(size int) *hand {
	return &hand{size: size, byID: map[string]*message{}, lanes: map[string][]*message{}, freed: make(chan struct{}, 1)}
}

// reserve reserves up to most places and waits for at least one. It returns 0 when
// ctx has ended.
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

// add puts m, which has a place, into its lane. It reports whether m is new, and
// whether its lane must start. A message already in hand does not start again: SQS
// may deliver it twice, or its extension came too late. add takes over its new
// receipt handle. h.mu is held for a whole response: a lane that sees a repeated
// message also sees the messages behind it.
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

// next returns the next message of a lane to run; nil ends the lane.
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

// lapsed reports whether another consumer may have m.
func (h *hand) lapsed(m *message) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !time.Now().Before(m.until)
}

// giveUp removes m, which may be nil, and the waiting messages of its lane from
// the renewals, and returns them in order. It waits for a running extension, which
// must not overtake the next request.
func (h *hand) giveUp(lane string, m *message) (ms []*message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m != nil {
		ms = append(ms, m)
	}
	ms = append(ms, h.lanes[lane]...)
	h.lanes[lane] = nil // its goroutine continues
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

// end releases m, unless m has come again with another handle than the given one.
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

// lease returns m's handle, the end of its visibility timeout, and the latest
// possible end.
func (h *hand) lease(m *message) (handle string, until, limit time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return m.handle, m.until, m.limit()
}

// look returns the counts in hand, and since when none has ended.
func (h *hand) look() (now Hand, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now.Messages = len(h.byID)
	for _, m := range h.byID {
		now.Oldest = max(now.Oldest, time.Since(m.taken))
	}
	return now, h.moved
}
