package queue

import (
	"context"
	"slices"
	"sync"
	"time"
)

// renewals is the number of looks at messages in hand within Visibility.
const renewals = 12

// keep extends the visibility of messages in hand, at half of it, until ctx ends.
func (s *source) keep(ctx context.Context, t terms) {
	tick := time.NewTicker(s.c.o.Visibility / renewals)
	defer tick.Stop()
	var under sync.WaitGroup
	defer under.Wait()
	for {
		if hook := s.c.o.Hooks.Hand; hook != nil {
			now, _ := s.hand.look()
			hook(s.name, now)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		due, lost := s.hand.due(time.Now(), s.c.o.Visibility)
		for _, m := range lost {
			s.log().Error("a message is in hand for longer than SQS hides it: somebody else may have it", "message", m.ID, "received", m.Received)
		}
		for some := range slices.Chunk(due, maxBatch) {
			under.Go(func() { s.renew(t, some) })
		}
	}
}

// renewal is a message whose visibility is being extended.
type renewal struct {
	m *message
	change
	ended chan struct{}
}

// due returns the messages to extend, and those that can no longer be extended.
func (h *hand) due(now time.Time, visibility time.Duration) (due []renewal, lost []*message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.byID {
		if m.state == returning || m.renewing != nil {
			continue
		}
		if !now.Before(m.until) && !m.told {
			m.told = true
			lost = append(lost, m)
		}
		left := m.limit().Sub(now).Truncate(time.Second)
		if now.Before(m.renewAt) || left < time.Second {
			continue
		}
		m.renewing = make(chan struct{})
		due = append(due, renewal{m, change{m.handle, min(visibility, left)}, m.renewing})
	}
	return due, lost
}

func (s *source) renew(t terms, rs []renewal) {
	cs := make([]change, len(rs))
	for i, r := range rs {
		cs[i] = r.change
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.writes, s.c.o.CallTimeout)
	errs := s.changeBatch(ctx, cs)
	cancel()
	h := s.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, r := range rs {
		if r.m.handle == r.handle && errs[i] == nil {
			r.m.until, r.m.renewAt = start.Add(r.after), start.Add(r.after/2)
		} // else it is due again at the next look
		r.m.renewing = nil
		close(r.ended)
	}
}
