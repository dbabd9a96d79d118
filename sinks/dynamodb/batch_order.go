package dynamodb

import (
	"context"
	"slices"
	"sync"

	"github.com/sluicehq/sluice/internal/quorum"
)

// lanes serialise writes of one key, first come, first served. A write holds its
// lane from before it joins a batch until its result. So no request has a key
// twice, which DynamoDB refuses, and no write overtakes another in its own
// request.
type lanes struct {
	mu     sync.Mutex
	queues map[keyID][]chan struct{} // waiting callers; a key is present while its lane is held
}

// enter returns when the caller holds the lanes of all ids, or returns the cause
// of ctx and holds none. It queues for all of them at once, so two callers never
// wait for each other. ids has no duplicates. A waiting handler gives back its
// slot in its flow, as in a batch. Otherwise waiters for one key would delay all
// other records.
func (l *lanes) enter(ctx context.Context, ids []keyID) error {
	waits := l.queue(ids)
	if len(waits) == 0 {
		return nil
	}
	m := quorum.From(ctx)
	m.Park()
	defer quorum.Unpark([]*quorum.Member{m})
	for _, w := range waits {
		select {
		case <-w:
		case <-ctx.Done():
			l.withdraw(ids, waits)
			return context.Cause(ctx)
		}
	}
	return nil
}

// queue returns the channels to wait for.
func (l *lanes) queue(ids []keyID) (waits []chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queues == nil {
		l.queues = map[keyID][]chan struct{}{}
	}
	for _, id := range ids {
		q, taken := l.queues[id]
		if taken {
			w := make(chan struct{})
			waits = append(waits, w)
			q = append(q, w)
		}
		l.queues[id] = q
	}
	return waits
}

// withdraw leaves held lanes and queues of others.
func (l *lanes) withdraw(ids []keyID, waits []chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		q := l.queues[id]
		if i := slices.IndexFunc(q, func(w chan struct{}) bool { return slices.Contains(waits, w) }); i >= 0 {
			l.queues[id] = slices.Delete(q, i, i+1)
		} else {
			l.pass(id)
		}
	}
}

// leave admits the next callers.
func (l *lanes) leave(ids []keyID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		l.pass(id)
	}
}

func (l *lanes) pass(id keyID) {
	q := l.queues[id]
	if len(q) == 0 {
		delete(l.queues, id)
		return
	}
	close(q[0])
	l.queues[id] = q[1:]
}
