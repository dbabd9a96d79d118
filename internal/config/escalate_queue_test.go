package config

import (
	"testing"
)

// If the application consumes the queue of its escalations, it needs routes for their
// kinds. A route for another kind is not enough.
func TestEscalateIntoAQueueThatIsConsumed(t *testing.T) {
	consumed := func(on ...string) *Config {
		c := calls()
		c.Source.Queues = []string{"tries"}
		if len(on) > 0 {
			c.Routes = append(c.Routes, Route{Name: "messages", On: on, Log: &Log{}})
		}
		return c
	}
	fails(t, consumed(), "routes[1].escalate.queue: the queue tries is consumed by the application itself, and no route takes MESSAGE")
	fails(t, consumed("chat#MESSAGE"), "routes[1].escalate.queue: the queue tries is consumed by the application itself, and no route takes call.attempt#MESSAGE")
	fails(t, consumed("call.attempt#MESSAGE"), "no route takes call.expire#MESSAGE")
	for _, on := range [][]string{{"call.attempt#MESSAGE", "call.expire#MESSAGE"}, {"*#MESSAGE"}} {
		newWorld().build(t, consumed(on...))
	}
}
