package sim

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/boltstate"
	"github.com/sluicehq/sluice/streamtest"
)

const application = "sim"

// history is one seed being run. Its director is one goroutine, which writes,
// splits and breaks things, and starts, stops and kills lives of the poller.
type history struct {
	t       *testing.T
	plan    *plan
	draw    draw
	trace   *trace
	check   *checker
	service *streamtest.Service
	tables  []*table
	store   keeper
	sinks   map[string]*sink // by route
	path    string           // of the state file
	verbose bool

	lives   int
	corpses sync.WaitGroup
	began   time.Time
	skipped time.Duration // in hours when nothing ran
	next    int           // event
	faults  []func()      // removes of what is scripted

	over       atomic.Bool            // no faults any more, but those of a trial
	poison     atomic.Pointer[string] // the item that is, in a trial
	mu         sync.Mutex
	storeUntil time.Time // it is down
}

// rates are those of the moment.
func (h *history) rates() rates {
	if h.over.Load() {
		return rates{}
	}
	return h.plan.rates
}

func (h *history) storeDown() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.over.Load() && time.Now().Before(h.storeUntil)
}

// now is how long the world has been, without the hours that were skipped.
func (h *history) now() time.Duration { return time.Since(h.began) - h.skipped }

// Bounds of the end.
const (
	restBound  = 3 * time.Minute  // from the end of all faults until everything is settled
	freshBound = 15 * time.Second // from a write to its being settled, when all is well and the shards' ancestors are known
)

// runHistory runs a seed; it is called in a bubble.
func runHistory(t *testing.T, seed uint64, verbose bool) *history {
	h := &history{t: t, plan: newPlan(seed), draw: draw(seed), verbose: verbose,
		trace: &trace{began: time.Now()}, sinks: map[string]*sink{}}
	for _, route := range routeNames {
		h.sinks[route] = &sink{}
	}
	h.trace.add(0, "seed %d: %s", seed, h.plan)
	time.Sleep(h.plan.begin)
	h.begin()
	h.run()
	h.corpses.Wait()
	if err := h.store.Close(); err != nil {
		panic(err)
	}
	return h
}

func (h *history) begin() {
	h.service = streamtest.NewService(h.t)
	h.service.SetLimits(h.plan.limits)
	h.check = newChecker(h.trace)
	h.check.routesOf = h.plan.routesOf
	h.check.news, h.check.trimmed, h.check.listed = h.news, h.trimmed, h.listed
	h.check.older = h.older
	h.check.parksItems = h.plan.o.Flow.ParkItem
	h.check.mayPark, h.check.limits = h.mayPark, h.plan.limitOf
	for _, tp := range h.plan.tables {
		h.create(tp)
	}
	h.openStore()
	h.service.Chaos(h.plan.rates.chaos)
	h.began = time.Now()
}

func (h *history) openStore() {
	if !h.plan.disk {
		if h.store == nil {
			h.store = state.NewMemory()
		}
		return
	}
	if h.path == "" {
		h.path = h.t.TempDir() + "/state"
	}
	s, err := boltstate.Open(h.path, boltstate.Options{})
	if err != nil {
		panic(err)
	}
	h.store = s
}

// reopenStore does what the end of a process does to its store.
func (h *history) reopenStore() {
	if err := h.store.Close(); err != nil {
		panic(err)
	}
	h.openStore()
}

func (h *history) run() {
	var before *life // whose routes are replaced; nil: a process begins
	var next *life
	for i, lp := range h.plan.lives {
		if h.now() >= h.plan.span {
			break
		}
		if next == nil {
			next = h.made(lp.crash)
		}
		l := next.after(before)
		next = nil
		h.pass(h.now()+lp.lasts, l)
		if lp.reload {
			next = h.prepared(h.plan.lives[i+1:])
			h.pass(h.now()+time.Duration(i%5)*2*time.Second, l)
		}
		if before = h.reload(l, lp); before != nil {
			continue
		}
		next = nil
		if !h.end(l, lp.orderly) {
			return
		}
		if lp.long {
			h.sleepLong(lp.down)
		} else {
			h.pass(h.now()+lp.down, nil)
		}
	}
	if next == nil {
		next = h.made(crash{})
	}
	l := next.after(before)
	for h.now() < h.plan.span {
		h.pass(h.plan.span, l)
		if h.now() < h.plan.span { // it ended of itself
			if !h.end(l, false) {
				return
			}
			h.pass(h.now()+time.Second, nil)
			l = h.live(crash{})
		}
	}
	h.calm()
	if h.plan.stop {
		if l = h.stopSoon(l); l == nil {
			return
		}
	}
	l = h.rest(l, restBound, true)
	if l == nil {
		return
	}
	h.finalWrites()
	if l = h.rest(l, h.freshBound(), false); l == nil {
		return
	}
	if h.plan.trial != nil {
		h.plan.trial(h)
		if l = h.rest(l, h.freshBound(), false); l == nil {
			return
		}
	}
	l.stop()
	if l.err != nil {
		h.check.violate(propStop, "an orderly stop with nothing wrong returned: %v", l.err)
	}
	h.reopenStore()
	ids := map[string]bool{}
	letters, err := h.store.ListLetters(h.t.Context(), application, "", 1<<20)
	if err != nil {
		panic(err)
	}
	for _, l := range letters {
		ids[l.ID] = true
	}
	h.check.kept(ids)
}

// prepared makes the next life while the current one runs, as a reload does. It returns
// nil if that fails, or if the next life is to crash after a count of its own actions.
func (h *history) prepared(later []lifePlan) *life {
	if len(later) == 0 || later[0].crash != (crash{}) {
		return nil
	}
	l := h.made(crash{})
	err := l.p.Prepare(h.t.Context())
	l.note("prepared: %v", err)
	if err != nil {
		return nil
	}
	return l
}

// reload hands a life over, if the plan says so and the life still runs, and returns it.
func (h *history) reload(l *life, lp lifePlan) *life {
	if !lp.reload {
		return nil
	}
	select {
	case <-l.done:
		return nil
	case <-l.gate.died:
		return nil
	default:
	}
	if !l.handOver() || l.err != nil || len(h.check.failed()) > 0 {
		return nil
	}
	return l
}

// stopSoon stops a life soon after the faults have ended, when what they set
// going is not over yet, and returns the next one.
func (h *history) stopSoon(l *life) *life {
	h.pass(h.now()+2*h.plan.o.CallTimeout, l) // for the calls that failed
	select {
	case <-l.done: // of a start that failed
	default:
		if l.stop() && l.err != nil {
			h.check.violate(propStop, "a stop when all was well again returned: %v", l.err)
		}
	}
	if !h.end(l, false) {
		return nil
	}
	return h.live(crash{})
}

// pass lets the world go on until a time, or until l has ended.
func (h *history) pass(until time.Duration, l *life) {
	var died, done <-chan struct{}
	if l != nil {
		died, done = l.gate.died, l.done
	}
	for {
		at := until
		if h.next < len(h.plan.events) {
			at = min(at, h.plan.events[h.next].at)
		}
		wait := time.NewTimer(max(0, at-h.now()))
		select {
		case <-wait.C:
		case <-died:
			wait.Stop()
			return
		case <-done:
			wait.Stop()
			return
		}
		if h.now() >= until {
			return
		}
		h.do(h.plan.events[h.next])
		h.next++
	}
}

// end ends a life, if it has not ended of itself. It is false when there is no
// point in going on.
func (h *history) end(l *life, orderly bool) bool {
	ended := false
	select {
	case <-l.done:
		ended = true
	default:
	}
	switch {
	case ended && l.stopped():
	case l.gate.isShut():
		l.kill()
	case ended:
		h.ended(l)
	case orderly:
		l.stop()
	default:
		l.kill()
	}
	h.reopenStore()
	return len(h.check.failed()) == 0
}

// ended looks at a Run that returned although nobody had asked for it.
func (h *history) ended(l *life) {
	l.note("ended of itself: %v", l.err)
	if !startFailed(l.err) {
		h.check.violate(propRun, "Run returned %v although nobody had stopped it", l.err)
	}
	l.gate.close()
	l.cancel(nil)
	h.check.left(l.n, false)
}

// calm ends all faults.
func (h *history) calm() {
	h.trace.add(0, "all faults are over")
	h.over.Store(true)
	for _, s := range h.sinks {
		s.healed()
	}
	h.service.Chaos(streamtest.Chaos{})
	for _, remove := range h.faults {
		remove()
	}
	h.next = len(h.plan.events)
	for _, t := range h.tables {
		for _, s := range t.Shards() {
			t.Hide(s.ID, 0)
		}
		h.enable(t)
	}
}

// freshBound is how long a write may take to be settled once all faults are over.
// After a start at LATEST whose listing left shards out, a new shard waits for
// five listings, and the poller asks for five pages a second.
func (h *history) freshBound() time.Duration {
	bound := h.plan.o.DiscoverEvery + freshBound
	if h.plan.o.Start == poller.Latest {
		for _, t := range h.tables {
			pages := (len(t.Shards()) + h.plan.limits.PageShards - 1) / h.plan.limits.PageShards
			bound += 5 * time.Duration(pages) * time.Second / 5
		}
	}
	return bound
}

// rest waits until everything is settled and stored, and returns the life that
// did it.
func (h *history) rest(l *life, bound time.Duration, mayFail bool) *life {
	limit := time.Now().Add(bound)
	for {
		if len(h.check.failed()) > 0 {
			l.kill()
			return nil
		}
		select {
		case <-l.done:
			if !mayFail || l.stopped() {
				h.check.violate(propRun, "Run returned %v", l.err)
			}
			if !h.end(l, false) {
				return nil
			}
			time.Sleep(time.Second)
			l = h.live(crash{})
		default:
		}
		why := h.check.unrest()
		if err := l.p.AcknowledgeGaps(h.t.Context(), l.p.Gaps()...); err != nil {
			why = fmt.Sprintf("gaps cannot be acknowledged: %v", err)
		}
		if why == "" {
			why = h.unread(l)
		}
		// What is written now comes behind them.
		if at := time.Unix(0, l.dropped.Load()); why == "" && time.Since(at) < 2*time.Second {
			why = "records that lie before the start are read"
		}
		if why == "" {
			if reasons := h.check.unexcused(l.first, l.p.NotReady()); len(reasons) > 0 {
				why = fmt.Sprintf("not ready: %v", reasons)
			} else if lag := l.p.Lag(); lag > 5*time.Second {
				why = fmt.Sprintf("the lag is %v", lag)
			}
		}
		if why == "" {
			h.trace.add(0, "at rest")
			return l
		}
		if time.Now().After(limit) {
			h.check.violate(propRest, "%v after the last fault: %s", bound, why)
			l.kill()
			return nil
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// unread names an open shard that the poller does not read, or is "".
func (h *history) unread(l *life) string {
	read := map[place]bool{}
	for _, s := range l.p.Shards() {
		read[place{s.Shard.StreamARN, s.Shard.ID}] = true
	}
	for _, t := range h.tables {
		arn := t.StreamARN()
		for _, s := range t.Shards() {
			if s.Open && !read[place{arn, s.ID}] {
				return fmt.Sprintf("shard %s of %s is not read", s.ID, arn)
			}
		}
	}
	return ""
}
