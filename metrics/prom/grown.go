package prom

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// grown is counters whose totals come from outside, even across restarts.
type grown struct {
	desc *prometheus.Desc

	mu     sync.Mutex
	totals map[string]float64 // by label values
}

func newGrown(name, help string, labels ...string) *grown {
	return &grown{desc: prometheus.NewDesc(name, help, labels, nil), totals: make(map[string]float64)}
}

func (g *grown) set(total float64, labels ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.totals[strings.Join(labels, "\x00")] = total
}

func (g *grown) Describe(ch chan<- *prometheus.Desc) { ch <- g.desc }

func (g *grown) Collect(ch chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for labels, total := range g.totals {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.CounterValue, total, strings.Split(labels, "\x00")...)
	}
}
