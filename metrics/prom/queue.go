package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/sources/queue"
)

type queueMetrics struct {
	receives, received, ended *prometheus.CounterVec
	calls                     *prometheus.CounterVec
	inHand, oldest            *prometheus.GaugeVec
}

func newQueueMetrics(reg prometheus.Registerer) *queueMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"queue"})
		reg.MustRegister(g)
		return g
	}
	return &queueMetrics{
		receives: counter("sluice_queue_receives_total", "ReceiveMessage calls: with messages, empty, or failed.", "queue", "outcome"),
		received: counter("sluice_queue_messages_received_total", "Messages received, repetitions included.", "queue"),
		ended: counter("sluice_queue_messages_total",
			"Finished messages: settled, parked, returned, unused, or lost to another reader.", "queue", "end"),
		calls:  counter("sluice_queue_changes_total", "Deletions and changes of visibility: done or failed.", "queue", "action", "outcome"),
		inHand: gauge("sluice_queue_in_hand", "Messages received and not finished."),
		oldest: gauge("sluice_queue_oldest_seconds", "Age of the oldest message in hand."),
	}
}

// Queue returns hooks for a consumer of queues.
func (m *Metrics) Queue() queue.Hooks {
	q := m.queue
	call := func(action string) func(string, queue.Call) {
		return func(name string, c queue.Call) {
			q.calls.WithLabelValues(name, action, "done").Add(float64(c.Messages - c.Failed))
			q.calls.WithLabelValues(name, action, "failed").Add(float64(c.Failed))
		}
	}
	return queue.Hooks{
		Received: func(name string, c queue.Call) {
			outcome := "messages"
			switch {
			case c.Err != nil:
				outcome = "failed"
			case c.Messages == 0:
				outcome = "empty"
			}
			q.receives.WithLabelValues(name, outcome).Inc()
			q.received.WithLabelValues(name).Add(float64(c.Messages))
		},
		Deleted: call("delete"),
		Changed: call("visibility"),
		Ended:   func(name string, e queue.End) { q.ended.WithLabelValues(name, string(e)).Inc() },
		Hand: func(name string, h queue.Hand) {
			q.inHand.WithLabelValues(name).Set(float64(h.Messages))
			q.oldest.WithLabelValues(name).Set(h.Oldest.Seconds())
		},
	}
}
