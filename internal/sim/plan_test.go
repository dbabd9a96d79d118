package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/streamtest"
)

// plan is what a seed means: all that a history is made of, but for what is
// decided by draw while it runs.
type plan struct {
	seed   uint64
	draw   draw
	disk   bool // the real state file
	big    bool // large items
	full   bool // the store fails for long, almost until the faults are over
	tables []tablePlan
	limits streamtest.Limits
	routes int
	park   bool          // there are dead letters
	denies bool          // the service denies shards that it has, once each, and never contradicts itself else
	begin  time.Duration // of the world; where the minute and the second are then
	span   time.Duration // of the faults
	lives  []lifePlan    // and one more that is not killed
	stop   bool          // that one is told to stop when the faults are over, and there is another
	events []event
	rates  rates
	limit  map[string]limit // of routes
	trial  func(*history)   // of how the poller judges a route; nil: none
	o      poller.Options   // without what a life adds
}

// Some seeds are of a kind that takes more real time than others: every
// kindEvery-th, from the kind on.
const (
	kindEvery = 16

	diskKind = 0 // the real state file
	bigKind  = 8 // items so large that the poller's memory is bounded
	fullKind = 4 // the store fails for long; waits between tries become long with it

	trialKind = 6  // routes are put on trial in the end
	burstKind = 12 // more records in a flow than its window begins with
)

type tablePlan struct {
	name   string
	shards int
	items  int
}

// lifePlan is one life of the poller and the time until the next.
type lifePlan struct {
	crash   crash
	lasts   time.Duration // at most
	orderly bool          // how it ends then
	reload  bool          // it is handed over instead, to the next one
	down    time.Duration
	long    bool // down for hours, in which the world goes on
}

// event is something that happens to a table.
type event struct {
	at    time.Duration
	do    doing
	table int
	n     int
	lasts time.Duration // of a storeOutage, partial, capacity or silence
}

type doing int

const (
	write doing = iota
	split
	roll
	hide
	deny
	trim
	outage // of a route
	storeOutage
	toggle   // the table's stream: disabled, or a new one enabled
	partial  // outage of a route: some items fail
	capacity // a route's sink refuses calls above a number at a time
	burst    // of writes, more than a flow's window begins with
	silence  // of a table's shards
)

// rates are probabilities of what is decided while a history runs.
type rates struct {
	transient, permanent, panics, skips, slow float64 // of a handler's call
	stubborn                                  float64 // slow and deaf to its context
	storeBefore, storeAfter, storeSlow        float64 // of a call of the store
	storeDeaf                                 float64 // slow and deaf to its context
	gap                                       float64 // of a gap that is to be stored: rare, so that it often fails
	chaos                                     streamtest.Chaos
}

func newPlan(seed uint64) *plan {
	rng := rand.New(rand.NewPCG(seed, 1))
	chance := func(percent int) bool { return rng.IntN(100) < percent }
	pick := func(ns ...int) int { return ns[rng.IntN(len(ns))] }
	between := func(lo, hi time.Duration) time.Duration { return lo + time.Duration(rng.Int64N(int64(hi-lo))) }
	p := &plan{seed: seed, draw: draw(seed), disk: seed%kindEvery == diskKind, big: seed%kindEvery == bigKind, full: seed%kindEvery == fullKind}

	p.begin = between(0, 2*time.Minute)
	p.span = between(8*time.Second, 25*time.Second)
	for i := range pick(1, 1, 1, 2) {
		p.tables = append(p.tables, tablePlan{name: "table" + string(rune('A'+i)), shards: pick(1, 1, 2, 3), items: pick(1, 3, 6)})
	}
	p.limits = streamtest.Limits{
		Retention:    24 * time.Hour, // as the poller takes it to be
		IteratorLife: time.Duration(pick(2, 5, 900)) * time.Second,
		PageRecords:  pick(1, 2, 5, 1000),
		PageShards:   pick(1, 2, 100),
	}
	p.routes = pick(1, 1, 2)
	p.park = chance(85)
	p.denies = chance(25)

	p.o = poller.Options{
		Start:           poller.TrimHorizon,
		BusyInterval:    time.Duration(pick(100, 300, 500)) * time.Millisecond,
		IdleInterval:    time.Second,
		Limit:           int32(pick(0, 0, 1, 3)),
		DiscoverEvery:   time.Duration(pick(5, 20, 60)) * time.Second,
		CheckpointEvery: time.Duration(pick(300, 1000)) * time.Millisecond,
		HeartbeatEvery:  2 * time.Second,
		CallTimeout:     time.Duration(pick(1, 3)) * time.Second,
		StartTimeout:    2 * time.Second,
		Grace:           time.Duration(pick(1, 5, 10)) * time.Second,
		CallsPerTable:   pick(0, 0, 30),
		MaxMemory:       int64(pick(0, 0, 16<<20)),
		Flow: flow.Options{
			Concurrency: pick(1, 2, 64),
			Window:      pick(1, 4, 20, 4096),
			MaxAhead:    pick(1, 5, 0),
			ParkItem:    p.park && chance(25),
		},
	}
	if chance(35) {
		p.o.Start = poller.Latest
	}
	if chance(10) {
		p.o.Flow.Order = flow.ByShard
	}

	p.stop = chance(50) || p.full
	if p.big {
		p.o.MaxMemory = 16 << 20
		p.limits.PageRecords = 1000
	}
	p.planRates(rng)
	p.rates.gap = 0.5 * float64(draw(seed).bits("gap")%2)
	p.planLives(rng)
	for i := range p.lives {
		p.lives[i].reload = p.lives[i].orderly && draw(seed).bits("reload", uint64(i))%2 == 0 // not of rng: the plans of seeds stay
	}
	p.planEvents(rng)
	p.planRoutes(rand.New(rand.NewPCG(seed, 2)))
	slices.SortStableFunc(p.events, func(a, b event) int { return int(a.at - b.at) })
	return p
}

func (p *plan) planRates(rng *rand.Rand) {
	some := func(percent int, most float64) float64 {
		if rng.IntN(100) >= percent {
			return 0
		}
		return rng.Float64() * most
	}
	p.rates = rates{
		transient: some(50, 0.4), panics: some(20, 0.1), skips: some(20, 0.2),
		slow: some(50, 0.3), stubborn: some(15, 0.05),
		storeBefore: some(30, 0.3), storeAfter: some(30, 0.3), storeSlow: some(20, 0.2),
	}
	if rng.IntN(100) < 70 {
		p.rates.chaos = streamtest.Chaos{
			Seed:   p.seed,
			Errors: some(40, 0.2), Throttles: some(40, 0.2), Hang: some(20, 0.03), Cut: some(40, 0.1),
			Slow: some(40, 0.2), SlowFor: 500 * time.Millisecond,
			Empty: some(40, 0.3), Short: some(40, 0.3), Expired: some(40, 0.1),
			Shuffled: some(40, 0.5), Incomplete: some(40, 0.2), Repeated: some(40, 0.3), Stale: some(40, 0.2),
		}
	}
	if p.denies {
		p.rates.chaos.Incomplete, p.rates.chaos.Stale = 0, 0
	}
	if p.park {
		p.rates.permanent = some(40, 0.1)
	}
}

// kinds of interactions at which lives are killed, the rare ones among them.
var kinds = []string{"", "", "", "", "handler", "handler", "checkpoint", "checkpoint", "claim", "release", "shards", "letter",
	"start", "finish", "GetRecords", "GetShardIterator", "DescribeStream"}

func (p *plan) planLives(rng *rand.Rand) {
	for range rng.IntN(5) {
		l := lifePlan{lasts: time.Duration(rng.Int64N(int64(12 * time.Second))), orderly: rng.IntN(100) < 40}
		if rng.IntN(100) < 65 {
			l.crash = crash{kind: kinds[rng.IntN(len(kinds))], after: rng.IntN(2) == 0}
			switch l.crash.kind {
			case "":
				l.crash.n = 1 + rng.IntN(150)
			case "start", "finish", "shards":
				l.crash.n = 1 + rng.IntN(2)
			default:
				l.crash.n = 1 + rng.IntN(12)
			}
		}
		switch rng.IntN(10) {
		case 0:
			l.long = true
			l.down = time.Duration(float64(p.limits.Retention) * (0.3 + 1.2*rng.Float64()))
		case 1, 2, 3, 4:
			l.down = time.Duration(rng.Int64N(int64(5 * time.Second)))
		}
		p.lives = append(p.lives, l)
	}
}

func (p *plan) planEvents(rng *rand.Rand) {
	for range 20 + rng.IntN(60) {
		e := event{at: time.Duration(rng.Int64N(int64(p.span))), table: rng.IntN(len(p.tables)), n: rng.IntN(1 << 30)}
		switch x := rng.IntN(100); {
		case x < 80:
			e.do = write
		case x < 84:
			e.do = split
		case x < 88:
			e.do = roll
		case x < 92:
			e.do = hide
			if p.denies {
				e.do = deny
			}
		case x < 94:
			e.do = trim
		case x < 95:
			e.do = outage
		case x < 98:
			e.do, e.lasts = storeOutage, time.Duration(1+e.n>>8%6)*time.Second
		default:
			e.do = toggle
		}
		if rng.IntN(5) == 0 { // before the first start
			e.at = 0
		}
		p.events = append(p.events, e)
	}
	if p.full {
		at := p.span / 3
		p.events = append(p.events, event{at: at, do: storeOutage, lasts: p.span - at})
	}
}

// trims reports whether records are trimmed before their time. Ids of shards do not
// tell their age then: of a young shard a poller believes no trim.
func (p *plan) trims() bool { return p.seed%2 == 1 }

// routesOf says which routes the records of an item take.
func (p *plan) routesOf(item string) []string {
	if p.routes == 2 && text(item)%2 == 0 {
		return []string{"a", "b"}
	}
	return []string{"a"}
}

// String tells what the trace does not.
func (p *plan) String() string {
	return fmt.Sprintf("%d tables, %d routes, start at %s, state in a file %v, dead letters %v\nlimits %+v\noptions %+v\nrates %+v",
		len(p.tables), p.routes, p.o.Start, p.disk, p.park, p.limits, p.o, p.rates)
}
