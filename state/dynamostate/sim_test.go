package dynamostate

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// A simulation of workers that share the shards of a table. A seed is a history: writes,
// splits, workers that come and go, and faults of each worker's ways to the state table,
// the stream and the sink. After the faults the fleet must come to rest.
//
//	sim_test        the director
//	sim_worker_test the workers: real pollers with real Stores
//	sim_link_test   what is between a process and the world: crashes, pauses, lost and late requests
//	sim_check_test  the properties, looked at with each row and each effect
//
// All share one monotonic clock. The clocks of the wall differ by years, and jump: what
// a worker stores of its own is shifted.

var (
	seeds = flag.Int("seeds", 2, "histories that TestFleetSeeds runs")
	seed1 = flag.Uint64("seed", 1, "the first of them; alone, its trace is printed")
)

// TestFleetSeeds runs histories, as many at a time as there are processors.
func TestFleetSeeds(t *testing.T) {
	const atOnce = 100 // tests that are kept in memory
	began := time.Now()
	for n := 0; n < *seeds; n += atOnce {
		t.Run("seeds", func(t *testing.T) {
			for i := range min(atOnce, *seeds-n) {
				seed := *seed1 + uint64(n+i)
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					t.Parallel()
					simulate(t, seed, *seeds == 1)
				})
			}
		})
	}
	if testing.Verbose() || *seeds > atOnce {
		fmt.Printf("%d seeds from %d in %v, failed: %v\n", *seeds, *seed1, time.Since(began).Round(time.Second), t.Failed())
	}
}

func simulate(t *testing.T, seed uint64, verbose bool) {
	synctest.Test(t, func(t *testing.T) {
		w := newSimWorld(t, seed)
		w.run()
		if verbose {
			fmt.Println(strings.Join(w.trace, "\n"))
		}
		if len(w.violations) > 0 {
			t.Errorf("%s\nTo run it again: make sim FLEET=1 SEED=%d", w.violations[0], seed)
		}
	})
}

// simPlan is the meaning of a seed.
type simPlan struct {
	orderly bool // no faults, but items that fail
	workers int  // at the start
	shards  int
	steps   int
	items   int
}

type simWorld struct {
	t      *testing.T
	r      *rand.Rand // the director's
	again  *rand.Rand // decides on reloads
	plan   simPlan
	svc    *streamtest.Service
	orders *streamtest.Table
	stream state.Stream
	rows   *memory
	began  time.Time

	mu         sync.Mutex
	trace      []string
	violations []string
	effects    simEffects
	claims     map[string]int
	finished   map[string]uint64 // epoch at the end of a shard
	failing    map[string]bool   // items
	numbers    map[string]int    // of each item's last change

	workers []*simWorker // that live
	started int
	corpses sync.WaitGroup
}

func newSimWorld(t *testing.T, seed uint64) *simWorld {
	r := rand.New(rand.NewPCG(seed, 20))
	w := &simWorld{t: t, r: r, again: rand.New(rand.NewPCG(seed, 21)), svc: streamtest.NewService(t), rows: new(memory), began: time.Now(),
		effects: simEffects{done: make(map[string]map[sluice.Sequence]bool), last: make(map[string]int)},
		claims:  make(map[string]int), finished: make(map[string]uint64), failing: make(map[string]bool), numbers: make(map[string]int)}
	w.plan = simPlan{orderly: r.IntN(6) == 0, workers: 1 + r.IntN(1+r.IntN(6)), shards: 1 + r.IntN(8), steps: 20 + r.IntN(100), items: 1 + r.IntN(12)}
	w.orders = w.svc.CreateTable("orders", streamtest.TableOptions{Shards: w.plan.shards})
	w.stream = state.Stream{Application: "app", ARN: w.orders.StreamARN()}
	w.note("seed %d: %+v", seed, w.plan)
	return w
}

func (w *simWorld) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%9.3f ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

func (w *simWorld) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(format, args...)
}

// kill ends a process at this moment.
func (w *simWorld) kill(v *simWorker) {
	w.say("%s is killed", v.name)
	v.link.kill()
	w.reap()
}

// reap forgets the dead.
func (w *simWorld) reap() {
	w.workers = slices.DeleteFunc(w.workers, func(v *simWorker) bool {
		select {
		case <-v.link.died:
			w.say("%s is dead", v.name)
		case <-v.done: // its start failed, and a supervisor starts another
			w.say("%s has ended: %v", v.name, v.err)
		default:
			return false
		}
		v.cancel()
		return true
	})
}

// stop ends a process in order.
func (w *simWorld) stop(v *simWorker) {
	w.say("%s is told to stop", v.name)
	w.workers = slices.DeleteFunc(w.workers, func(other *simWorker) bool { return other == v })
	v.cancel()
	select {
	case <-v.done:
		w.say("%s has stopped: %v", v.name, v.err)
	case <-v.link.died:
	case <-time.After(40 * time.Second): // grace, and its store's end
		w.mu.Lock()
		w.violate(propStop, "%s", v.name)
		w.mu.Unlock()
		v.link.kill()
	}
}

func (w *simWorld) put(item string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.numbers[item]++
	seq := w.orders.Put(map[string]any{"pk": item, "n": strconv.Itoa(w.numbers[item])})
	w.note("put %s n=%d: %s", item, w.numbers[item], seq)
}

func (w *simWorld) one() *simWorker { return w.workers[w.r.IntN(len(w.workers))] }

// run directs.
func (w *simWorld) run() {
	for range w.plan.workers {
		w.start()
		time.Sleep(time.Duration(w.r.IntN(3000)) * time.Millisecond)
	}
	for range w.plan.steps {
		for range w.r.IntN(8) {
			w.put(fmt.Sprint("item", w.r.IntN(w.plan.items)))
		}
		time.Sleep(time.Duration(1+w.r.IntN(1200)) * time.Millisecond)
		w.reap()
		w.expire()
		if len(w.workers) == 0 {
			w.start()
		}
		if w.again.IntN(8) == 0 { // beside whatever goes on
			select {
			case w.workers[w.again.IntN(len(w.workers))].reload <- struct{}{}:
			default: // it does so already
			}
		}
		if w.r.IntN(5) == 0 {
			w.event()
		}
	}
	w.end()
}

// fail makes the changes of an item fail for a while.
func (w *simWorld) fail(d time.Duration) {
	item := fmt.Sprint("item", w.r.IntN(w.plan.items))
	w.say("%s fails for %v", item, d)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing[item] = true
	time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.failing, item)
	})
}

// event is a change of the fleet or the table, or a fault.
func (w *simWorld) event() {
	const most = 12
	d := time.Duration(500+w.r.IntN(11500)) * time.Millisecond
	switch n := w.r.IntN(18); {
	case n == 0 && len(w.workers) < most:
		w.start()
	case n == 1 && len(w.workers) > 1:
		w.stop(w.one())
	case n == 2: // rolling deployment
		for _, old := range slices.Clone(w.workers) {
			w.start()
			time.Sleep(time.Duration(w.r.IntN(5000)) * time.Millisecond)
			if slices.Contains(w.workers, old) {
				w.stop(old)
			}
		}
	case n == 3 || n > 14:
		var open []string
		for _, sh := range w.orders.Shards() {
			if sh.Open {
				open = append(open, sh.ID)
			}
		}
		id := open[w.r.IntN(len(open))]
		if w.r.IntN(2) == 0 && len(open) < 10 {
			w.say("%s splits", id)
			w.orders.Split(id)
		} else {
			w.say("%s is followed", id)
			w.orders.Roll(id)
		}
		if w.r.IntN(2) == 0 && len(w.workers) < most { // it sees the children before their parent is settled
			w.fail(d)
			w.start()
		}
	case n == 4:
		w.fail(d)
	case w.plan.orderly:
	case n == 5:
		w.kill(w.one())
	case n == 6:
		v := w.one()
		v.link.mu.Lock()
		v.link.crashIn = 1 + w.r.IntN(200)
		v.link.mu.Unlock()
		w.say("%s will crash", v.name)
	case n == 7:
		v := w.one()
		w.say("%s is paused for %v", v.name, d)
		v.link.pause(d)
	case n == 8:
		w.one().jump()
	default: // in any combination
		for range 1 + w.r.IntN(3) {
			v, party, m := w.one(), parties[w.r.IntN(len(parties))], mode(1+w.r.IntN(int(modes)-1))
			d := time.Duration(500+w.r.IntN(11500)) * time.Millisecond
			w.say("%s to the %s: %d for %v", v.name, party, m, d)
			v.link.set(party, m)
			if w.r.IntN(3) == 0 {
				time.AfterFunc(d/2, func() { v.link.set(party, cut) })
			}
			time.AfterFunc(d, func() { v.link.set(party, works) })
		}
	}
}

const (
	// handedWithin is for the handlers that run. Changes that wait for them have more.
	handedWithin = 2 * time.Second
	// ownedWithin is from the end of the faults until each shard has an owner: a pause
	// goes on for 12 s, a refused shard is asked for again, a shard is listed.
	ownedWithin = 2 * time.Minute
	// settledWithin is until each change has its effect: a retry waits for 30 s.
	settledWithin = 4 * time.Minute
	// evenWithin is until the shards are divided: a minute after the last one left, and
	// after avoidFor for one that did not take an offer amid the faults.
	evenWithin = avoidFor + 4*time.Minute
)

// end ends all faults, and waits until the fleet is at rest.
func (w *simWorld) end() {
	for _, v := range w.workers {
		v.link.heal()
	}
	w.mu.Lock()
	clear(w.failing)
	w.mu.Unlock()
	time.Sleep(13 * time.Second) // the longest fault
	w.reap()
	if len(w.workers) == 0 {
		w.start()
	}
	w.say("the faults are over, and %d workers live", len(w.workers))
	for i := range w.plan.items {
		w.put(fmt.Sprint("item", i))
	}
	within := func(bound time.Duration, why func() (prop, why string)) {
		for began := time.Now(); ; time.Sleep(time.Second) {
			prop, text := why()
			if prop == "" || len(w.violations) > 0 {
				return
			}
			if time.Since(began) > bound {
				w.mu.Lock()
				w.violate(prop, "after %v: %s", bound, text)
				w.mu.Unlock()
				return
			}
		}
	}
	within(ownedWithin, func() (string, string) {
		prop, why := w.unowned(w.workers)
		if prop == propEven {
			return "", ""
		}
		return prop, why
	})
	within(settledWithin, func() (string, string) {
		if n, first := w.missing(); n > 0 {
			return propLost, fmt.Sprintf("%d changes have no effect, the first is %s", n, first)
		}
		return "", ""
	})
	within(evenWithin, func() (string, string) { return w.unowned(w.workers) })
	time.Sleep(10 * time.Second)
	w.mu.Lock()
	clear(w.claims)
	w.mu.Unlock()
	time.Sleep(time.Minute)
	w.mu.Lock()
	if len(w.claims) > 0 {
		w.violate(propRest, "claims: %v", w.claims)
	}
	w.mu.Unlock()
	for len(w.workers) > 0 {
		w.stop(w.workers[0])
	}
	w.corpses.Wait()
	for _, sh := range w.orders.Shards() {
		s, err := shardOf(w.row(sh.ID))
		if w.mu.Lock(); err != nil || s.Owner != "" && !s.Position.Finished {
			w.violate(propStop, "%s is left to %q; %v", sh.ID, s.Owner, err)
		}
		w.settledTo(sh.ID, s.Position)
		w.mu.Unlock()
	}
}
