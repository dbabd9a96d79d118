package emf

import (
	"sync"
	"time"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/sources/lambda"
)

// Names of the metrics of an invocation.
var invocationNames = [...]string{
	"Invocations", "InvocationErrors", "PartialFailures", "ColdStarts", "Records", "Settled", "Failed", "Parked", "Unrouted", "InvocationDuration",
}

func (m *Metrics) appendInvocation(dst []byte, inv lambda.Invocation, now time.Time) []byte {
	m.none.mu.Lock()
	unrouted := m.none.counts[unroutedRecords]
	m.none.counts = [routeCounts]int{}
	m.none.calls.reset()
	m.none.mu.Unlock()
	l := m.begin(dst, now, "", "")
	for i, n := range [...]int{
		1, oneIf(inv.Err != nil), oneIf(inv.Err == nil && inv.Settled < inv.Records), oneIf(inv.Cold),
		inv.Records, inv.Settled, inv.Failed, inv.Parked, unrouted,
	} {
		l.count(invocationNames[i], n)
	}
	l.value(invocationNames[len(invocationNames)-1], milliseconds, inv.Took.Seconds()*1000)
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

// Indexes of the counts of a route. The first have names in routeNames.
const (
	doneRecords = iota
	skippedRecords
	parkedRecords
	failedRecords
	parkFailures
	stuckHandlers
	unroutedRecords // reported for the invocation
	routeCounts
)

var routeNames = [...]string{"Done", "Skipped", "Parked", "Failed", "ParkFailures", "StuckHandlers", "HandlerDuration"}

var countOf = [...]int{
	flow.Done: doneRecords, flow.Skipped: skippedRecords, flow.Parked: parkedRecords,
	flow.Retried: failedRecords, flow.Stopped: failedRecords, flow.Unrouted: unroutedRecords,
}

type route struct {
	name string

	mu     sync.Mutex
	counts [routeCounts]int
	calls  sample // milliseconds
}

func (r *route) handled(result flow.Result, took time.Duration) {
	r.mu.Lock()
	r.counts[countOf[result]]++
	r.calls.add(took.Seconds() * 1000)
	r.mu.Unlock()
}

func (r *route) add(count int) {
	r.mu.Lock()
	r.counts[count]++
	r.mu.Unlock()
}

func (r *route) flush(dst []byte, m *Metrics, now time.Time) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == [routeCounts]int{} {
		return dst
	}
	l := m.begin(dst, now, "Route", r.name)
	for i, n := range r.counts[:unroutedRecords] {
		l.count(routeNames[i], n)
	}
	l.sample(routeNames[len(routeNames)-1], milliseconds, &r.calls)
	r.counts = [routeCounts]int{}
	r.calls.reset()
	return l.end()
}
