package prom

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/sources/queue"
)

func TestQueue(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	h := New(reg).Queue()
	h.Received("jobs", queue.Call{Messages: 7})
	h.Received("jobs", queue.Call{})
	h.Received("jobs", queue.Call{})
	h.Received("jobs", queue.Call{Err: errors.New("down")})
	h.Deleted("jobs", queue.Call{Messages: 5, Failed: 2})
	h.Changed("jobs", queue.Call{Messages: 3, Failed: 3, Err: errors.New("down")})
	h.Ended("jobs", "settled")
	h.Ended("jobs", "settled")
	h.Ended("jobs", "parked")
	h.Hand("jobs", queue.Hand{Messages: 9, Oldest: 90 * time.Second})
	h.Hand("jobs", queue.Hand{Messages: 4, Oldest: 1500 * time.Millisecond})
	expectSeries(t, reg, `
# HELP sluice_queue_changes_total Deletions and changes of visibility: done or failed.
# TYPE sluice_queue_changes_total counter
sluice_queue_changes_total{action="delete",outcome="done",queue="jobs"} 3
sluice_queue_changes_total{action="delete",outcome="failed",queue="jobs"} 2
sluice_queue_changes_total{action="visibility",outcome="done",queue="jobs"} 0
sluice_queue_changes_total{action="visibility",outcome="failed",queue="jobs"} 3
# HELP sluice_queue_in_hand Messages received and not finished.
# TYPE sluice_queue_in_hand gauge
sluice_queue_in_hand{queue="jobs"} 4
# HELP sluice_queue_messages_received_total Messages received, repetitions included.
# TYPE sluice_queue_messages_received_total counter
sluice_queue_messages_received_total{queue="jobs"} 7
# HELP sluice_queue_messages_total Finished messages: settled, parked, returned, unused, or lost to another reader.
# TYPE sluice_queue_messages_total counter
sluice_queue_messages_total{end="parked",queue="jobs"} 1
sluice_queue_messages_total{end="settled",queue="jobs"} 2
# HELP sluice_queue_oldest_seconds Age of the oldest message in hand.
# TYPE sluice_queue_oldest_seconds gauge
sluice_queue_oldest_seconds{queue="jobs"} 1.5
# HELP sluice_queue_receives_total ReceiveMessage calls: with messages, empty, or failed.
# TYPE sluice_queue_receives_total counter
sluice_queue_receives_total{outcome="empty",queue="jobs"} 2
sluice_queue_receives_total{outcome="failed",queue="jobs"} 1
sluice_queue_receives_total{outcome="messages",queue="jobs"} 1
`, "sluice_queue_changes_total", "sluice_queue_in_hand", "sluice_queue_messages_received_total",
		"sluice_queue_messages_total", "sluice_queue_oldest_seconds", "sluice_queue_receives_total")
}
