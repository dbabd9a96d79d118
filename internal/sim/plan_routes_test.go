package sim

import (
	"math/rand/v2"
	"time"

	"github.com/sluicehq/sluice/flow"
)

// limit is what a route is allowed.
type limit struct {
	concurrency int
	rate        float64
	burst       int
}

func (p *plan) limitOf(route string) limit { return p.limit[route] }

// planRoutes plans what becomes of the routes and what they call, and how soon
// readiness has to tell of it.
func (p *plan) planRoutes(rng *rand.Rand) {
	chance := func(percent int) bool { return rng.IntN(100) < percent }
	pick := func(ns ...int) int { return ns[rng.IntN(len(ns))] }
	p.o.StaleAfter = time.Duration(pick(3, 5, 30)) * time.Second
	p.o.StallAfter = time.Duration(pick(5, 300)) * time.Second
	if chance(20) {
		p.rates.storeDeaf = 0.1 * rng.Float64()
	}
	for range rng.IntN(4) {
		e := event{at: time.Duration(rng.Int64N(int64(p.span))), do: partial, n: rng.IntN(1 << 30)}
		e.lasts = time.Duration(rng.Int64N(int64(10 * time.Second)))
		if chance(50) {
			e.do = capacity
		}
		p.events = append(p.events, e)
	}
	if chance(10) {
		at := time.Duration(rng.Int64N(int64(p.span)))
		p.events = append(p.events, event{at: at, do: silence, table: rng.IntN(len(p.tables)), lasts: p.span - at})
	}
	switch p.seed % kindEvery {
	case trialKind:
		p.park = true
		p.ample()
		p.trial = trials[rng.IntN(len(trials))]
		return
	case burstKind:
		p.ample()
		for range 2 {
			p.events = append(p.events, event{at: time.Duration(rng.Int64N(int64(p.span))), do: burst, table: rng.IntN(len(p.tables))})
		}
		return
	}
	p.limit = map[string]limit{}
	for _, route := range routeNames {
		var l limit
		if chance(25) {
			l.concurrency = pick(1, 2, 5)
		}
		if chance(20) {
			l.rate, l.burst = float64(pick(10, 50)), pick(0, 5)
		}
		p.limit[route] = l
	}
}

// ample gives records the room to wait for each other.
func (p *plan) ample() {
	p.o.Flow = flow.Options{Concurrency: 64}
	p.o.Limit, p.o.MaxMemory, p.o.CallsPerTable = 0, 0, 0
	p.limits.PageRecords = 1000
}
