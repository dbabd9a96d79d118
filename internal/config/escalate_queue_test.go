package config

import (
	"testing"
)

// Messages of escalations that the application takes from the queue itself need
// routes for their kinds; one for others does not make them arrive.
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
