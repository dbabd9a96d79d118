//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"

	"golang.org/x/time/rate"

	"github.com/sluicehq/sluice/bench/local"
)

const (
	writers = 4
	perCall = 25 // items in a BatchWriteItem call
	items   = 2000
	parents = 50
)

// share is the items of one writer, which nobody else writes: the table has what
// it wrote last.
type share struct {
	items    []thing
	next     int
	random   *rand.Rand
	messages []string // one for each change
}

// thing is an item, or the rest of a deleted one.
type thing struct {
	id     string
	exists bool
	rev    int64
	amount int64
	parent string
}

func newShare(n int) *share {
	s := &share{random: rand.New(rand.NewPCG(1, uint64(n)))}
	for i := n; i < items; i += writers {
		s.items = append(s.items, thing{id: fmt.Sprintf("item-%05d", i)})
	}
	return s
}

func parentName(i int) string { return fmt.Sprintf("parent-%03d", i) }

// after is the next state of an item: most are changed, some of those move to
// another parent, and a few are deleted.
func (s *share) after(t thing) (next thing, event string) {
	switch {
	case !t.exists:
		// The deletion had the revision behind the last, so that this one comes
		// after it.
		next = thing{id: t.id, exists: true, rev: t.rev + 2, amount: s.random.Int64N(1000), parent: parentName(s.random.IntN(parents))}
		return next, "INSERT"
	case s.random.IntN(10) == 0:
		next = t
		next.exists = false
		return next, "REMOVE"
	}
	next = t
	next.rev++
	next.amount = s.random.Int64N(1000)
	if s.random.IntN(10) == 0 {
		next.parent = parentName(s.random.IntN(parents))
	}
	return next, "MODIFY"
}

func (t thing) request(event string) string {
	if event == "REMOVE" {
		return fmt.Sprintf(`{"DeleteRequest":{"Key":{"pk":{"S":%q}}}}`, t.id)
	}
	return fmt.Sprintf(`{"PutRequest":{"Item":{"pk":{"S":%q},"entityType":{"S":"item"},"rev":{"N":"%d"},"amount":{"N":"%d"},"parent":{"S":%q},`+
		`"title":{"S":"%[1]s in its revision %[2]d"},"tags":{"SS":["blue","green"]},"size":{"M":{"width":{"N":"12.5"},"height":{"N":"%[3]d"}}},"live":{"BOOL":true}}}}`,
		t.id, t.rev, t.amount, t.parent)
}

// write writes until writing is over. Only ctx ends a running call, so the content
// of the table is known.
func (w *world) write(ctx, writing context.Context, s *share, limit *rate.Limiter) error {
	for {
		if err := limit.WaitN(writing, perCall); err != nil {
			return nil //nolint:nilerr // the time is over
		}
		if err := w.writeOnce(ctx, s); err != nil {
			return err
		}
	}
}

// writeOnce changes the next items of a share, all in one call.
func (w *world) writeOnce(ctx context.Context, s *share) error {
	w.gate.RLock()
	defer w.gate.RUnlock()
	requests := make([]json.RawMessage, 0, perCall)
	for range perCall {
		t := &s.items[s.next]
		s.next = (s.next + 1) % len(s.items)
		next, event := s.after(*t)
		requests = append(requests, json.RawMessage(next.request(event)))
		s.messages = append(s.messages, change(event, t.id, next.rev))
		*t = next
	}
	for len(requests) > 0 {
		body, err := json.Marshal(map[string]any{"RequestItems": map[string]any{itemsTable: requests}})
		if err != nil {
			return err
		}
		var out struct{ UnprocessedItems map[string][]json.RawMessage }
		if err := local.Call(ctx, w.dynamoDB, "BatchWriteItem", body, &out); err != nil {
			return err
		}
		w.written.Add(int64(len(requests) - len(out.UnprocessedItems[itemsTable])))
		requests = out.UnprocessedItems[itemsTable]
	}
	return nil
}

// mailbox is the messages that were received.
type mailbox struct {
	mu  sync.Mutex
	got map[string]int
}

func (m *mailbox) add(body string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got[body]++
}

func (m *mailbox) different() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.got)
}
