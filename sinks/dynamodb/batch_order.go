package dynamodb

import (
	"context"
	"slices"
	"sync"

	"github.com/sluicehq/sluice/internal/quorum"
)

// lanes let writes of one key follow one another, first come, first served.
// One is in from before it joins a batch until its result is there. So no
// request has a key twice, which DynamoDB refuses, and none overtakes another
// one in a request of its own.
type lanes struct {
	mu     sync.Mutex
	queues map[keyID][]chan struct{} // of those that wait; a key is in it while somebody is in
}

// enter returns when the caller is in the lanes of all ids, or with the cause
// of ctx and in none. It takes its place in all of them at one time, so that
// two callers never wait for each other. ids holds none twice. A handler that
// waits gives back its place among those of its flow, as it does in a batch:
// else those that wait for one key would hold up all others.
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

// queue returns what to wait for.
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

// withdraw leaves the lanes that the caller is in and the queues of others.
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

// leave lets the next ones in.
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
