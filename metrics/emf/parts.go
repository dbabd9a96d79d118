package emf

import (
	"time"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/sources/lambda"
)

// Names of the metrics of an invocation.
var invocationNames = [...]string{
	"Invocations", "InvocationErrors", "PartialFailures", "ColdStarts", "Records", "Settled", "Failed", "Parked", "Unrouted", "InvocationDuration",
}

func (m *Metrics) appendInvocation(dst []byte, inv lambda.Invocation, now time.Time) []byte {
	l := m.begin(dst, now, "", "")
	for i, n := range [...]int{
		1, oneIf(inv.Err != nil), oneIf(inv.Err == nil && inv.Settled < inv.Records), oneIf(inv.Cold),
		inv.Records, inv.Settled, inv.Failed, inv.Parked, int(m.unrouted.Swap(0)),
	} {
		l.count(invocationNames[i], counts, float64(n))
	}
	l.metric(invocationNames[len(invocationNames)-1], milliseconds)
	l.values = appendNumber(l.values, inv.Took.Seconds()*1000)
	if inv.RequestID != "" {
		l.field("RequestId", clean(inv.RequestID, maxValue))
	}
	return l.end()
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Indexes of the series of a route.
const (
	doneRecords = iota
	skippedRecords
	parkedRecords
	failedRecords
	parkFailures
	stuckHandlers
	callTimes
)

var routeNames = [...]string{"Done", "Skipped", "Parked", "Failed", "ParkFailures", "StuckHandlers", "HandlerDuration"}

var countOf = [...]int{
	flow.Done: doneRecords, flow.Skipped: skippedRecords, flow.Parked: parkedRecords,
	flow.Retried: failedRecords, flow.Stopped: failedRecords,
}

func routePart(name string) *part {
	p := &part{dimension: dimension{"Route", clean(name, maxValue)}, route: true}
	for _, of := range routeNames {
		p.series = append(p.series, &series{name: of, unit: counts})
	}
	p.series[callTimes].unit, p.series[callTimes].sample = milliseconds, new(sample)
	return p
}

func (p *part) handled(result flow.Result, took time.Duration) {
	p.mu.Lock()
	p.series[countOf[result]].count++
	p.series[callTimes].sample.add(took.Seconds() * 1000)
	p.mu.Unlock()
}

func (p *part) increase(index int) {
	p.mu.Lock()
	p.series[index].count++
	p.mu.Unlock()
}
