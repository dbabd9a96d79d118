package flow

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/internal/localtest"
)

var (
	seeds = flag.Int("seeds", defaultSeeds, "random histories that TestSeeds runs")
	seed1 = flag.Uint64("seed", 0, "the first of them")
)

// TestSeeds runs random histories against an oracle that knows, record by
// record and route by route, what happened. Batches linger for ever, so that
// a lost wake-up hangs; synctest reports that, and goroutines that are left.
func TestSeeds(t *testing.T) {
	for seed := *seed1; seed < *seed1+uint64(*seeds); seed++ {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					panic(fmt.Sprintf("seed %d: %v", seed, p))
				}
			}()
			newHistory(t, seed).run()
		})
		if t.Failed() {
			t.Fatalf("run it alone with -seed=%d -seeds=1", seed)
		}
	}
	if *seeds == defaultSeeds {
		localtest.Elsewhere(t) // more of them
	}
}

// pastCalls is what a run is made of.
type pastCalls struct {
	*oracle
	recs    []sluice.Record
	table   *table
	flow    *Flow
	sibling *sibling              // nil: the flow has its Group for itself
	sinks   []*batch.Batcher[int] // none: handlers use none
	forever bool                  // some handlers never stop failing
	cut     time.Duration         // Open's ctx ends then; 0: it does not
	grace   time.Duration         // of Close
	pages   []*sheet

	follower *follower // may be nil
}

func newHistory(t *testing.T, seed uint64) *pastCalls {
	rng := rand.New(rand.NewPCG(seed, 1))
	chance := func(percent int) bool { return rng.IntN(100) < percent }
	pick := func(ns ...int) int { return ns[rng.IntN(len(ns))] }
	h := &pastCalls{oracle: newOracle(t, seed, rng), grace: 1000 * time.Hour}

	h.o = Options{
		Concurrency: pick(1, 2, 4, 64),
		Window:      pick(1, 3, 10, 100, 4096),
		MaxAhead:    pick(1, 5, 50, 0),
		Logger:      quiet,
		StuckAfter:  time.Duration(pick(1, 60)) * time.Second,
	}
	if chance(20) {
		h.o.WindowBytes = int64(pick(50, 150, 1000))
	}
	if chance(15) {
		h.o.Order = ByShard
	}
	if chance(30) {
		h.o.Policy = Stop
	}
	if chance(75) {
		h.o.DeadLetter = deadLetters{h.oracle}
		h.o.ParkItem = chance(30)
	}
	if chance(20) {
		h.cut = time.Duration(1+rng.IntN(500)) * time.Millisecond
	}
	if chance(20) {
		h.grace = time.Duration(rng.IntN(300)) * time.Millisecond
	}
	if h.forever = chance(10); h.forever {
		h.grace = min(h.grace, time.Hour)
	}
	if chance(60) {
		for range 2 {
			h.sinks = append(h.sinks, batch.New(h.commit, nil, batch.Options{
				MaxItems: 1 + rng.IntN(10), InFlight: 1 + rng.IntN(3), Linger: -1,
			}))
		}
	}

	if chance(50) {
		h.o.Hooks.Handled = h.hooked
	}
	if h.o.ParkItem && chance(50) {
		h.o.DeadLetter = knowing{deadLetters{h.oracle}}
	}
	if seed%2 == 0 {
		h.follower = &follower{errorf: h.errorf}
		h.o.Hooks.Tracer = h.follower
	}
	h.table = &table{pick: h.match}
	for i := range 1 + rng.IntN(3) {
		r := &sluice.Route{Name: string(rune('a' + i)), Index: i, Handler: h.handler(i, 0)}
		if chance(20) {
			r.Concurrency = 1 + rng.IntN(3)
		}
		if chance(20) {
			r.Rate, r.Burst = float64(pick(10, 1000)), pick(0, 5)
		}
		if chance(20) {
			r.Timeout = time.Duration(1+rng.IntN(100)) * time.Millisecond
		}
		if chance(20) {
			r.Attempts = 1 + rng.IntN(3)
		}
		if chance(15) {
			r.MaxAge = time.Duration(1+rng.IntN(60)) * time.Second
		}
		if chance(15) {
			r.MaxBackoff = time.Duration(pick(50, 500, 3_600_000)) * time.Millisecond
		}
		var down [2]time.Duration
		if chance(20) {
			down[0] = time.Duration(rng.IntN(1000)) * time.Millisecond
			down[1] = down[0] + time.Duration(1+rng.IntN(180))*time.Second
		}
		h.down = append(h.down, down)
		h.table.routes = append(h.table.routes, r)
	}
	h.routes = h.table.routes
	h.active = make([]int, len(h.routes))
	if chance(40) {
		h.sibling = &sibling{h: h, ends: time.Duration(rng.IntN(5000)) * time.Millisecond, records: 1 + rng.IntN(50), o: Options{
			Concurrency: pick(1, 2, 8), DeadLetter: &letters{}, Group: NewGroup(h.table), Logger: quiet,
		}}
		h.o.Group = h.sibling.o.Group
		h.table.pick = h.sibling.match
	}

	items := 1 + rng.IntN(20)
	for i := range 1 + rng.IntN(120) {
		f := &fate{item: fmt.Sprint("item", rng.IntN(items)), routes: make([]routeFate, len(h.routes)), match: fits}
		r := rec(f.item, i+1)
		switch x := rng.IntN(60); x {
		case 0:
			r = *sluice.DecodeRecord([]byte(`{"nonsense":`))
			f.item, f.match = fmt.Sprint("unknown", i), undecodable
		case 1, 2, 3:
			f.match = match(x)
		default:
			for k := range h.routes {
				f.routes[k].takes = chance(80)
			}
		}
		if h.o.Order == ByShard {
			f.lane = "shard"
		} else {
			f.lane = f.item
		}
		r.EventID = strconv.Itoa(i)
		h.recs = append(h.recs, r)
		h.fates = append(h.fates, f)
	}
	return h
}

func (h *pastCalls) run() {
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	if h.cut > 0 {
		time.AfterFunc(h.cut, cancel)
	}
	f := Open(ctx, h.table, h.o)
	h.flow, h.settled = f, f.Settled
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if h.sibling != nil {
			h.sibling.run(h.t.Context())
		}
	}()
	hangs := time.AfterFunc(5000*time.Hour, func() { panic(fmt.Sprintf("seed %d: hangs", h.seed)) })
	defer hangs.Stop()
	watching := make(chan struct{})
	go func() {
		for {
			select {
			case <-f.Changed():
				h.checkWatermark()
				f.Held()
			case <-watching:
				return
			}
		}
	}()

	submitCtx, cancelSubmit := context.WithTimeout(h.t.Context(), h.grace)
	defer cancelSubmit()
	submitted := uint64(0)
	for rest := h.recs; len(rest) > 0; {
		n := 1 + h.intn(len(rest))
		last, err := f.SubmitPage(submitCtx, h.page(rest[:n]))
		if err == nil && last != submitted+uint64(n) {
			h.errorf("Submit = %d after %d and %d more", last, submitted, n)
		}
		submitted = last
		if err != nil {
			break
		}
		rest = rest[n:]
		if h.intn(3) == 0 {
			time.Sleep(time.Duration(h.intn(100)) * time.Millisecond)
		}
	}
	closeCtx, cancelClose := context.WithTimeout(h.t.Context(), h.grace)
	defer cancelClose()
	settled, err := f.Close(closeCtx)
	cancelled := closeCtx.Err() != nil
	close(watching)

	left := false
	select {
	case <-f.Idle():
	default:
		left = true
		if !cancelled {
			h.errorf("handlers run after Close")
		}
	}
	h.closed(settled, submitted, err, left)
	f.Held()
	mustFinish := h.o.Policy == Park && h.o.DeadLetter != nil && h.cut == 0 && h.grace > time.Hour && !h.forever
	if mustFinish && settled != uint64(len(h.recs)) {
		h.errorf("Close = %d, %v: want all of %d", settled, err, len(h.recs))
	}
	if _, err := f.Submit(h.t.Context(), rec("late", 1)); err == nil {
		h.errorf("a closed flow takes records")
	}
	<-f.Idle()
	<-ended
	time.Sleep(time.Hour) // goroutines that handlers left behind
	synctest.Wait()
	if now := f.Settled(); now != settled {
		h.errorf("the watermark went on after Close, from %d to %d", settled, now)
	}
	h.checkEmpty(f)
	if h.sibling != nil {
		h.checkEmpty(h.sibling.flow)
	}
	for _, p := range h.pages {
		if n := p.kept(); n != 0 {
			h.errorf("%d of %d bytes of a page are kept after the end", n, p.Bytes)
		}
	}
	if h.o.Hooks.Handled != nil && !left {
		h.checkHooks()
	}
	if h.follower != nil {
		h.follower.check()
	}
}

// page puts rs on a page that may be larger or smaller than copies of them.
func (h *pastCalls) page(rs []sluice.Record) Page {
	p := paged(h.t, int64(1+h.intn(3000*len(rs))), rs...)
	h.pages = append(h.pages, p)
	return p.Page
}

// checkEmpty finds what a flow has not given back.
func (h *pastCalls) checkEmpty(f *Flow) {
	if f.retrying != 0 || f.queued != 0 {
		h.errorf("retrying %d, queued %d after the end", f.retrying, f.queued)
	}
	if f.running != 0 || f.busy != 0 || len(f.all) != 0 || len(f.free) != 0 {
		h.errorf("running %d, busy %d, workers %d, free %d after the end", f.running, f.busy, len(f.all), len(f.free))
	}
	if f.scope.Enter(1); f.scope.Idle() {
		h.errorf("the scope was left too often")
	}
	if f.scope.Leave(1); !f.scope.Idle() {
		h.errorf("the scope was not left")
	}
	for _, g := range f.group.gates {
		if g.running != 0 || g.inSinks != 0 || g.waiting != 0 || len(g.queues) > 0 || g.items.failing != 0 {
			h.errorf("gate of %s: running %d, in sinks %d, waiting %d, queues %v, failing %d", g.route.Name, g.running, g.inSinks, g.waiting, g.queues, g.items.failing)
		}
	}
}

var errTest = errors.New("failed")

// handler does something at random; rest is how often it replaced itself.
func (h *pastCalls) handler(route, rest int) sluice.Handler {
	return func(ctx context.Context, r *sluice.Record) (err error) {
		if h.sibling.has(r) {
			return h.sibling.handle(ctx, route)
		}
		n, call := h.enter(r, route, rest)
		returned := false
		defer func() {
			if keyOf(r) != h.fates[n].item {
				h.errorf("the page of record %d was given back while it was handled", n)
			}
			h.leave(n, route, err, returned)
		}()
		result := func(e error) error { returned = true; return e }

		if h.isDown(route) {
			return result(errTest)
		}
		how := h.intn(24)
		if fails := h.intn(8); call > fails && !h.forever || h.forever && n%7 != 0 && call > fails {
			how = 20 // enough
		}
		switch how {
		case 0:
			panic("at the disco")
		case 1:
			runtime.Goexit()
		case 2, 3, 4:
			return result(errTest)
		case 5:
			return result(sluice.RetryAfter(time.Duration(h.intn(1000))*time.Millisecond, errTest))
		case 6:
			return result(sluice.Permanent(errTest))
		case 7:
			return result(fmt.Errorf("wrapped: %w", sluice.Skip("no need")))
		case 8:
			return result(&sluice.Remaining{Rest: h.handler(route, rest+1), Err: errors.Join(errTest, sluice.Skip("not all"))})
		case 9: // obeys
			select {
			case <-time.After(time.Duration(h.intn(1000)) * time.Millisecond):
			case <-ctx.Done():
				return result(ctx.Err())
			}
		case 10, 11: // does not
			time.Sleep(time.Duration(h.intn(200)) * time.Millisecond)
		case 13:
			return result(sluice.Overloaded(errTest))
		case 14:
			return result(sluice.RetryAfter(time.Duration(h.intn(100))*time.Second, sluice.Overloaded(errTest)))
		case 12:
			if h.intn(10) == 0 {
				time.Sleep(20 * time.Second)
			}
		}
		if h.sinks == nil {
			return result(nil)
		}
		for range h.intn(3) {
			c, cancel := ctx, context.CancelFunc(func() {})
			if h.intn(5) == 0 {
				c, cancel = context.WithTimeout(ctx, time.Duration(h.intn(50))*time.Millisecond)
			}
			err := h.sinks[h.intn(2)].Do(c, n)
			cancel()
			if err != nil {
				return result(err)
			}
		}
		if h.intn(20) == 0 { // a goroutine that uses the context after the return
			go h.sinks[0].Do(ctx, n)
		}
		return result(nil)
	}
}

func (h *pastCalls) commit(ctx context.Context, items []int) []error {
	time.Sleep(time.Duration(h.intn(20)) * time.Millisecond)
	switch h.intn(20) {
	case 0:
		panic("commit")
	case 1:
		runtime.Goexit()
	case 2, 3:
		errs := make([]error, len(items))
		errs[h.intn(len(items))] = errTest
		return errs
	}
	return nil
}

// sibling is a flow that shares its Group with the one that the oracle watches,
// and is closed in the middle. Its records are the sibling's own.
type sibling struct {
	h       *pastCalls
	o       Options
	flow    *Flow
	records int
	ends    time.Duration
}

func (s *sibling) has(r *sluice.Record) bool { return s != nil && r.EventID == "sibling" }

func (s *sibling) match(r *sluice.Record) ([]int, error) {
	if !s.has(r) {
		return s.h.match(r)
	}
	return []int{s.h.intn(len(s.h.routes))}, nil
}

func (s *sibling) run(ctx context.Context) {
	s.flow = Open(ctx, s.h.table, s.o)
	ctx, cancel := context.WithTimeout(ctx, s.ends)
	defer cancel()
	for range s.records {
		r := rec(fmt.Sprint("sibling", s.h.intn(10)), 1)
		r.EventID = "sibling"
		s.flow.Submit(ctx, r)
	}
	s.flow.Close(ctx)
	<-s.flow.Idle()
}

func (s *sibling) handle(ctx context.Context, route int) error {
	if s.h.isDown(route) {
		return errTest
	}
	switch s.h.intn(8) {
	case 0:
		return errTest
	case 1:
		return sluice.Overloaded(errTest)
	case 2:
		time.Sleep(10 * time.Second)
	case 3:
		runtime.Goexit()
	case 4:
		if len(s.h.sinks) > 0 {
			return s.h.sinks[0].Do(ctx, 0)
		}
	}
	return nil
}
