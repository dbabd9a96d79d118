package lambda

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/sluicehq/sluice/flow"
)

// leftovers are flows of answered invocations with a handler still running.
type leftovers struct {
	mu    sync.Mutex
	flows []*flow.Flow
}

// add remembers f unless all of its handlers have returned.
func (l *leftovers) add(f *flow.Flow) {
	select {
	case <-f.Idle():
	default:
		l.mu.Lock()
		l.flows = append(l.flows, f)
		l.mu.Unlock()
	}
}

// wait returns once no handler of an earlier invocation runs. After limit it
// returns an error that makes the runtime report the invocation as failed and end
// the process.
func (l *leftovers) wait(limit time.Duration) error {
	l.mu.Lock()
	flows := slices.Clone(l.flows)
	l.mu.Unlock()
	if len(flows) == 0 {
		return nil
	}
	start := time.Now()
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for _, f := range flows {
		select {
		case <-f.Idle():
		default:
			select {
			case <-f.Idle():
			case <-timeout.C:
				return stuck(time.Since(start))
			}
		}
		l.remove(f)
	}
	return nil
}

func (l *leftovers) remove(f *flow.Flow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flows = slices.DeleteFunc(l.flows, func(g *flow.Flow) bool { return g == f })
}

func stuck(waited time.Duration) error {
	return messages.InvokeResponse_Error{
		Type: "StuckHandler",
		Message: fmt.Sprintf("a handler of an earlier invocation is still running after another %v: "+
			"the process ends, so that a fresh one keeps the order of changes; make the handler return when its context is done",
			waited.Round(time.Millisecond)),
		ShouldExit: true,
	}
}
