package flow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// oracle knows what has happened to each record, by the handlers' own account,
// and what may happen next. It compares every record with every other.
type oracle struct {
	t       *testing.T
	seed    uint64
	o       Options
	routes  []*sluice.Route
	settled func() uint64

	mu       sync.Mutex
	rng      *rand.Rand
	fates    []*fate
	begun    time.Time
	active   []int // calls at once, by route
	calls    int
	finished int
	prefix   int // records finished without a gap
	over     bool
	stopped  bool // under Stop: a failure was seen
	stopTime time.Time
	stopOrd  int

	down     [][2]time.Duration // by route: since begun it fails for all from the first until the second
	unrouted int                // told by the hook
}

// fate is what has become of a record.
type fate struct {
	item, lane string
	match      match
	routes     []routeFate
	running    bool
	parked     bool // as a whole
	done       bool
}

type routeFate struct {
	takes     bool
	calls     int
	rest      int  // number of the handler to be called next
	permanent bool // failed for good
	ended     bool // succeeded or skipped
	parked    bool
	hooks     [Unrouted]int // by Result
}

// match is how a record fares before its routes.
type match int

const (
	undecodable match = iota
	matchFails
	matchPanics
	matchExits
	fits
)

func newOracle(t *testing.T, seed uint64, rng *rand.Rand) *oracle {
	return &oracle{t: t, seed: seed, rng: rng, begun: time.Now()}
}

func (o *oracle) intn(n int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rng.IntN(n)
}

func (o *oracle) errorf(format string, args ...any) {
	o.t.Helper()
	o.t.Errorf("seed %d: "+format, append([]any{o.seed}, args...)...)
}

// isDown reports whether a route fails for all.
func (o *oracle) isDown(route int) bool {
	at := time.Since(o.begun)
	return at >= o.down[route][0] && at < o.down[route][1]
}

// aged reports whether a record may be too old for a route.
func (o *oracle) aged(route int) bool {
	most := o.routes[route].MaxAge
	if most == 0 {
		most = defaultMaxAge
	}
	return time.Since(o.begun) >= most
}

func ordinal(r *sluice.Record) int {
	n, err := strconv.Atoi(r.EventID)
	if err != nil { // a panic here would be the record's failure, and the flow would try again
		go panic(fmt.Sprintf("a record is read whose page was given back: %v", err))
		select {}
	}
	return n
}

// match is the Matcher's.
func (o *oracle) match(r *sluice.Record) (takes []int, err error) {
	n := ordinal(r)
	switch o.fates[n].match {
	case matchFails:
		return nil, errTest
	case matchPanics:
		panic("match")
	case matchExits:
		runtime.Goexit()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.checkTurn(n)
	for i, r := range o.fates[n].routes {
		if r.takes {
			takes = append(takes, i)
		}
	}
	o.progress(n)
	return takes, nil
}

// checkTurn holds that everything before record n in its lane is finished.
func (o *oracle) checkTurn(n int) {
	f := o.fates[n]
	for i, before := range o.fates[:n] {
		if before.lane == f.lane && !before.done {
			o.errorf("record %d overtakes record %d of %s", n, i, f.lane)
		}
	}
	for i, after := range o.fates[n+1:] {
		if after.lane == f.lane && after.running {
			o.errorf("record %d runs beside record %d", n, n+1+i)
		}
	}
	if o.stopped && n > o.stopOrd && time.Now().After(o.stopTime) && !o.over {
		o.errorf("record %d was started after the failure of record %d", n, o.stopOrd)
	}
	if o.over {
		o.errorf("record %d was started after Close", n)
	}
}

// enter is the begin of a call.
func (o *oracle) enter(r *sluice.Record, route, rest int) (n, call int) {
	n = ordinal(r)
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.fates[n]
	rf := &f.routes[route]
	o.checkTurn(n)
	if keyOf(r) != f.item {
		o.errorf("record %d is of item %q, want %q", n, keyOf(r), f.item)
	}
	switch {
	case f.match != fits || !rf.takes:
		o.errorf("record %d does not take route %d", n, route)
	case f.running:
		o.errorf("record %d is handled twice at once", n)
	case rf.ended || rf.parked:
		o.errorf("record %d, route %d: called again after its end", n, route)
	case rf.permanent:
		o.errorf("record %d, route %d: called again after a permanent failure", n, route)
	case rf.rest != rest:
		o.errorf("record %d, route %d: handler %d is called, want %d", n, route, rest, rf.rest)
	case o.heldBack(n, route):
		o.errorf("record %d, route %d: called behind a parked change of its item", n, route)
	}
	f.running = true
	rf.calls++
	o.calls++
	o.active[route]++
	if limit := o.routes[route].Concurrency; limit > 0 && o.active[route] > limit {
		o.errorf("%d calls of route %d at once, limit %d", o.active[route], route, limit)
	}
	if held := o.held(); !o.o.ParkItem && n+1-o.finished-held > max(o.o.Window, 1) {
		o.errorf("record %d runs with %d finished, %d held and a window of %d", n, o.finished, held, o.o.Window)
	}
	if ahead := o.o.MaxAhead; ahead > 0 && n-o.prefix > ahead {
		o.errorf("record %d runs with %d finished in a row, %d ahead at most", n, o.prefix, ahead)
	}
	o.checkSettled()
	return n, rf.calls
}

// held counts the records that are not finished and may have failed, or were
// behind one that did.
func (o *oracle) held() (n int) {
	lanes := map[string]bool{}
	for _, f := range o.fates {
		failed := f.match != fits
		for _, r := range f.routes {
			failed = failed || r.calls > 1 || r.calls > 0 && !r.ended
		}
		failed = failed || lanes[f.lane]
		lanes[f.lane] = failed && o.o.Order == ByItem
		if failed && !f.done {
			n++
		}
	}
	return n
}

// heldBack reports whether an earlier change of record n's item is parked.
func (o *oracle) heldBack(n, route int) bool {
	for _, before := range o.fates[:n] {
		if before.item == o.fates[n].item && (before.parked || before.routes[route].parked) {
			return o.o.ParkItem
		}
	}
	return false
}

// leave is the end of a call.
func (o *oracle) leave(n, route int, err error, returned bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.fates[n]
	rf := &f.routes[route]
	f.running = false
	o.calls--
	o.active[route]--
	if o.over {
		return
	}
	var remaining *sluice.Remaining
	var skip *sluice.SkipError
	switch {
	case !returned:
		o.failed(n, route)
	case err == nil:
		rf.ended = true
	case errors.As(err, &remaining):
		rf.rest++
		o.failed(n, route)
	case errors.As(err, &skip):
		rf.ended = true
	case sluice.IsPermanent(err):
		rf.permanent = true
		if o.o.DeadLetter == nil {
			o.failed(n, route)
		}
	default:
		o.failed(n, route)
	}
	o.progress(n)
}

// failed notes a failure of a call. A record that may be as old as its route lets
// it become may be parked for it.
func (o *oracle) failed(n, route int) {
	if age := o.routes[route].MaxAge; age > 0 && o.o.DeadLetter != nil && time.Since(o.begun) >= age {
		return
	}
	o.stop(n)
}

// stop notes a failure that ends a flow with policy Stop.
func (o *oracle) stop(n int) {
	if o.o.Policy == Stop && (!o.stopped || n < o.stopOrd) {
		o.stopped, o.stopOrd, o.stopTime = true, n, time.Now()
	}
}

// progress looks whether record n is finished.
func (o *oracle) progress(n int) {
	f := o.fates[n]
	if f.done || f.match != fits && !f.parked {
		return
	}
	for _, r := range f.routes {
		if r.takes && !r.ended && !r.parked {
			return
		}
	}
	f.done = true
	o.finished++
	for o.prefix < len(o.fates) && o.fates[o.prefix].done {
		o.prefix++
	}
}

func (o *oracle) checkWatermark() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.checkSettled()
}

func (o *oracle) checkSettled() {
	if s := o.settled(); s > uint64(o.prefix) {
		o.errorf("watermark %d, but only %d are finished in a row", s, o.prefix)
	}
}

// closed is told what Close returned; left says that handlers still run.
func (o *oracle) closed(settled, submitted uint64, err error, left bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	prefix := min(uint64(o.prefix), submitted)
	if settled > prefix || settled < prefix && !left {
		o.errorf("Close = %d, but %d are finished in a row", settled, prefix)
	}
	if (err == nil) != (settled == submitted) {
		o.errorf("Close = %d, %v with %d submitted", settled, err, submitted)
	}
	for i, f := range o.fates[:settled] {
		for k, r := range f.routes {
			if r.takes && r.calls == 0 && !(r.parked && (o.heldBack(i, k) || o.aged(k))) {
				o.errorf("record %d is settled, route %d was never called", i, k)
			}
		}
	}
}

// deadLetters fail now and then.
type deadLetters struct{ o *oracle }

func (d deadLetters) Park(ctx context.Context, r *sluice.Record, why sluice.Failure) error {
	o := d.o
	n := ordinal(r)
	o.mu.Lock()
	o.checkTurn(n)
	f := o.fates[n]
	if why.First == nil || why.Last == nil || why.FirstAt.IsZero() || why.LastAt.Before(why.FirstAt) {
		o.errorf("record %d is parked for %+v", n, why)
	}
	if f.match == fits {
		o.checkParking(n, why)
	} else if why.Route != "" || why.Attempts != 0 {
		o.errorf("record %d cannot be matched, but is parked for %+v", n, why)
	}
	how := o.rng.IntN(10)
	nap := time.Duration(o.rng.IntN(50)) * time.Millisecond
	o.mu.Unlock()
	switch how {
	case 0:
		o.fail(n)
		panic("park")
	case 1:
		o.fail(n)
		runtime.Goexit()
	case 2:
		o.fail(n)
		return errTest
	case 3:
		time.Sleep(nap)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return nil
	}
	if f.match != fits {
		f.parked = true
	} else {
		f.routes[o.route(why.Route)].parked = true
	}
	o.progress(n)
	return nil
}

func (o *oracle) fail(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stop(n)
}

func (o *oracle) route(name string) int {
	for i, r := range o.routes {
		if r.Name == name {
			return i
		}
	}
	panic("no route " + name)
}

// checkParking holds that there was a reason.
func (o *oracle) checkParking(n int, why sluice.Failure) {
	k := o.route(why.Route)
	rf := &o.fates[n].routes[k]
	attempts := o.routes[k].Attempts
	if attempts == 0 {
		attempts = defaultAttempts
	}
	switch {
	case !rf.takes || rf.ended || rf.parked:
		o.errorf("record %d, route %d: parked without need", n, k)
	case why.Attempts != rf.calls:
		o.errorf("record %d, route %d: parked after %d calls, the entry says %d", n, k, rf.calls, why.Attempts)
	case rf.permanent || o.heldBack(n, k):
	case o.aged(k):
	case o.o.Policy == Stop:
		o.errorf("record %d, route %d: parked under Stop", n, k)
	case rf.calls < attempts:
		o.errorf("record %d, route %d: parked after %d failures", n, k, rf.calls)
	}
}

// knowing is a dead letter that knows its items.
type knowing struct{ deadLetters }

func (d knowing) Holds(ctx context.Context, r *sluice.Record, route string) (bool, error) {
	o := d.o
	n := ordinal(r)
	o.mu.Lock()
	how, held := o.rng.IntN(20), o.heldBack(n, o.route(route))
	o.mu.Unlock()
	switch how {
	case 0:
		o.fail(n)
		panic("holds")
	case 1:
		o.fail(n)
		runtime.Goexit()
	case 2:
		o.fail(n)
		return !held, errTest
	}
	return held, nil
}

// hooked is Hooks.Handled.
func (o *oracle) hooked(_ context.Context, r *sluice.Record, route *sluice.Route, how Result, took time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := ordinal(r)
	f := o.fates[n]
	if (err == nil) != (how == Done || how == Unrouted) {
		o.errorf("record %d: %v with error %v", n, how, err)
	}
	switch {
	case how == Unrouted:
		o.unrouted++
		for _, r := range f.routes {
			if r.takes || route != nil {
				o.errorf("record %d has a route and is told to be unrouted", n)
			}
		}
	case route == nil:
		if f.match == fits {
			o.errorf("record %d: no route is told", n)
		}
	default:
		f.routes[route.Index].hooks[how]++
	}
}

// checkHooks holds that each end of a call was told once.
func (o *oracle) checkHooks() {
	o.mu.Lock()
	defer o.mu.Unlock()
	unrouted := 0
	for n, f := range o.fates {
		none := f.match == fits && f.done
		for k, r := range f.routes {
			none = none && !r.takes
			good, parked := r.hooks[Done]+r.hooks[Skipped], r.hooks[Parked]
			if good != count(r.ended) || parked != count(r.parked) {
				o.errorf("record %d, route %d: ended %v, parked %v, told %v", n, k, r.ended, r.parked, r.hooks)
			}
		}
		unrouted += count(none)
	}
	if o.unrouted != unrouted {
		o.errorf("%d unrouted records told, want %d", o.unrouted, unrouted)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
