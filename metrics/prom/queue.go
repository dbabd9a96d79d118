package prom

import (
	"github.com/sluicehq/sluice/sources/queue"
)

// Queue returns hooks for a consumer of queues.
func (m *Metrics) Queue() queue.Hooks { return m.queue }

func newQueueHooks(f factory) queue.Hooks {
	receives := f.counter("sluice_queue_receives_total", "ReceiveMessage calls: with messages, empty, or failed.", "queue", "outcome")
	received := f.counter("sluice_queue_messages_received_total", "Messages received, repetitions included.", "queue")
	ended := f.counter("sluice_queue_messages_total", "Finished messages: settled, parked, returned, unused, or lost to another reader.", "queue", "end")
	calls := f.counter("sluice_queue_changes_total", "Deletions and changes of visibility: done or failed.", "queue", "action", "outcome")
	inHand := f.gauge("sluice_queue_in_hand", "Messages received and not finished.", "queue")
	oldest := f.gauge("sluice_queue_oldest_seconds", "Age of the oldest message in hand.", "queue")
	call := func(action string) func(string, queue.Call) {
		return func(name string, c queue.Call) {
			calls.WithLabelValues(name, action, "done").Add(float64(c.Messages - c.Failed))
			calls.WithLabelValues(name, action, "failed").Add(float64(c.Failed))
		}
	}
	return queue.Hooks{
		Received: func(name string, c queue.Call) {
			receives.WithLabelValues(name, outcome(c.Err, c.Messages, "messages")).Inc()
			received.WithLabelValues(name).Add(float64(c.Messages))
		},
		Deleted: call("delete"),
		Changed: call("visibility"),
		Ended:   func(name string, e queue.End) { ended.WithLabelValues(name, string(e)).Inc() },
		Hand: func(name string, h queue.Hand) {
			inHand.WithLabelValues(name).Set(float64(h.Messages))
			oldest.WithLabelValues(name).Set(h.Oldest.Seconds())
		},
	}
}
