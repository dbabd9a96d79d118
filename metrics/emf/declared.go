package emf

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/metrics"
)

// part is metrics of one dimension. It has a line of its own.
type part struct {
	dimension dimension
	route     bool // else of metrics that packages have declared

	mu     sync.Mutex
	series []*series
}

type series struct {
	name   string
	unit   unit
	count  float64
	sample *sample // of a histogram; nil: it is a counter
}

// validNames returns an error if CloudWatch refuses a name of the metrics.
func validNames(all []*metrics.Metric) error {
	for _, m := range all {
		for _, name := range []string{m.CloudWatch, m.Dimension} {
			if name != "" && clean(name, maxName) != name {
				return fmt.Errorf("emf: %q is not a name in CloudWatch: want 1 to %d printable characters of ASCII that do not begin with a colon", name, maxName)
			}
		}
	}
	return nil
}

// Wants reports whether the metric has a name in CloudWatch: see metrics.Meter.
func (m *Metrics) Wants(of *metrics.Metric) bool { return of.CloudWatch != "" }

// Bind is that of metrics.Meter. What has no name in CloudWatch is not told.
func (m *Metrics) Bind(of *metrics.Metric, labels ...string) func(float64) {
	if of.CloudWatch == "" {
		return nil
	}
	at := dimension{name: of.Dimension}
	if at.name != "" {
		at.value = clean(labels[0], maxValue)
	}
	m.mu.Lock()
	line := m.lines[at]
	if line == nil {
		line = &part{dimension: at}
		m.lines[at], m.parts = line, append(m.parts, line)
	}
	m.mu.Unlock()
	return line.bind(of)
}

func (p *part) bind(of *metrics.Metric) func(float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.series, func(s *series) bool { return s.name == of.CloudWatch }) // with other label values
	if i < 0 {
		i, p.series = len(p.series), append(p.series, &series{name: of.CloudWatch, unit: counts})
		if of.Buckets != nil {
			p.series[i].sample = new(sample)
		}
	}
	s := p.series[i]
	times := 1.0
	if strings.HasSuffix(of.Name, "_seconds") {
		s.unit, times = milliseconds, 1000
	}
	return func(v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) { // JSON has no such number
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if s.sample != nil {
			s.sample.add(v * times)
		} else {
			s.count += v * times
		}
	}
}

// flush appends a line if there are values, and resets them. Only a route's line has
// counters that are 0.
func (p *part) flush(dst []byte, m *Metrics, now time.Time) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	counted := func(s *series) bool { return s.count != 0 }
	zeros := p.route && slices.ContainsFunc(p.series, counted)
	l := m.begin(dst, now, p.dimension.name, p.dimension.value)
	for _, s := range p.series {
		switch {
		case s.sample != nil:
			l.sample(s.name, s.unit, s.sample)
			s.sample.reset()
		case zeros || counted(s):
			l.count(s.name, s.unit, s.count)
			s.count = 0
		}
	}
	if !l.some {
		return dst
	}
	return l.end()
}
