package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// longest bounds how long a transaction may keep others from being sent.
const longest = 100 * time.Millisecond

// pool is where units wait for a transaction. All commits of a Store put their
// units here and make transactions of whatever waits, also of each other's
// units, until their own are done. So what has to wait for an item that is in a
// transaction already is together in the next one.
//
// A transaction that is not full is not sent while another one is on its way
// and takes no longer than usual, nor in the moment after it, in which those
// that it releases come back with their next unit. Without that, callers fall
// apart into small groups that wait for each other's counters in turns.
type pool struct {
	send    func(context.Context, *dynamodb.TransactWriteItemsInput) error
	explain func(error) error // for people
	opt     Options

	mu      sync.Mutex
	asked   uint64           // units that have come
	waiting []*unit          // the oldest first
	busy    map[ref]struct{} // items in transactions on their way

	flying  int           // transactions on their way
	usual   time.Duration // that they take
	rest    time.Duration // after the last one, if it was of several units
	hold    time.Time     // until then only full transactions are sent
	parties uint64        // numbers given out
	changed chan struct{} // closed when something waits, or may go, that did not before
}

// state is what the pool knows of a unit.
type state struct {
	nth   uint64          // of those that have come
	ctx   context.Context //nolint:containedctx // of the unit's commit; it bounds how long the unit may wait
	sent  bool            // in a transaction on its way
	done  bool
	err   error
	last  error     // why it was refused for the moment
	tries int       // how often it was
	ripe  time.Time // not to be sent before
	alone bool      // shares no transaction
	party uint64    // shares transactions only with units of the same number
}

// commit returns when all units are done. It is what package batch calls.
func (p *pool) commit(ctx context.Context, units []*unit) []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.leave(units)
	for _, u := range units {
		p.asked++
		u.nth, u.ctx = p.asked, ctx
	}
	p.waiting = append(p.waiting, units...)
	p.wake()
	for !all(units, func(u *unit) bool { return u.done }) {
		if ctx.Err() != nil && p.giveUp(ctx, units) {
			continue
		}
		if all(units, func(u *unit) bool { return u.done || u.sent }) {
			p.wait(nil, time.Time{}) // what is on its way has a result to come
			continue
		}
		t, next := p.form(time.Now())
		if t == nil {
			p.wait(ctx.Done(), next)
			continue
		}
		p.run(ctx, t)
	}
	errs := make([]error, len(units))
	for i, u := range units {
		errs[i] = u.err
	}
	return errs
}

func all(units []*unit, is func(*unit) bool) bool {
	return !slices.ContainsFunc(units, func(u *unit) bool { return !is(u) })
}

// wake has all commits look again.
func (p *pool) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// wait waits for a change, for the end of a context unless it is nil, and for a
// moment unless it is zero. The lock is given back meanwhile.
func (p *pool) wait(ended <-chan struct{}, until time.Time) {
	changed := p.changed
	p.mu.Unlock()
	defer p.mu.Lock()
	var due <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-changed:
	case <-ended:
	case <-due:
	}
}

// giveUp fails those units that wait after their time has run out. What is on
// its way has a result to come. It reports whether there were any.
func (p *pool) giveUp(ctx context.Context, units []*unit) (gave bool) {
	for _, u := range units {
		if u.done || u.sent {
			continue
		}
		gave = true
		u.finish(errors.Join(fmt.Errorf("not written in time: %w", context.Cause(ctx)), u.last))
	}
	p.waiting = slices.DeleteFunc(p.waiting, func(u *unit) bool { return u.done })
	p.wake() // others may have waited behind them
	return gave
}

// leave takes out what a commit leaves behind that ends in a panic.
func (p *pool) leave(units []*unit) {
	if all(units, func(u *unit) bool { return u.done }) {
		return
	}
	for _, u := range units {
		u.finish(errors.New("the request ended in a panic"))
	}
	p.waiting = slices.DeleteFunc(p.waiting, func(u *unit) bool { return u.done })
	p.wake()
}

func (u *unit) finish(err error) { u.done, u.err = true, err }

// refs are the items that u touches.
func (u *unit) refs() iter.Seq[ref] {
	return func(yield func(ref) bool) {
		for _, part := range u.parts {
			if p := part.written(); p != nil && !yield(p.ref) {
				return
			}
		}
	}
}

// form takes out of the pool what goes into the next transaction, the oldest
// first; nil when nothing may go now. Then next is when something becomes ripe,
// or zero.
//
// A unit that may not go holds back the younger ones that touch its items.
// Otherwise one with two hot items might wait for ever.
func (p *pool) form(now time.Time) (_ *transaction, next time.Time) {
	t := newTransaction()
	held := map[ref]struct{}{}
	var left []*unit
	for i, u := range p.waiting {
		if u.ripe.After(now) && (next.IsZero() || u.ripe.Before(next)) {
			next = u.ripe
		}
		if !u.ripe.After(now) && !p.touched(u, held) && t.take(u) {
			continue
		}
		if t.full {
			left = append(left, p.waiting[i:]...)
			break
		}
		for ref := range u.refs() {
			held[ref] = struct{}{}
		}
		left = append(left, u)
	}
	if len(t.units) == 0 {
		return nil, next
	}
	if !t.full && now.Before(p.hold) {
		if next.IsZero() || p.hold.Before(next) {
			next = p.hold
		}
		return nil, next
	}
	p.waiting = left
	p.launched(t, now)
	for _, u := range t.units {
		u.sent = true
		for ref := range u.refs() {
			p.busy[ref] = struct{}{}
		}
	}
	return t, time.Time{}
}

func (p *pool) launched(t *transaction, now time.Time) {
	t.begun, t.asked = now, p.asked
	p.flying++
	if until := now.Add(min(2*p.usual, longest)); until.After(p.hold) {
		p.hold = until
	}
}

func (p *pool) landed(t *transaction, err error) {
	now := time.Now()
	if err == nil {
		p.usual += (now.Sub(t.begun) - p.usual) / 4
	}
	if p.flying--; p.flying > 0 {
		return
	}
	if p.hold = now; len(t.units) > 1 {
		p.hold = now.Add(p.rest)
	}
}

func (p *pool) touched(u *unit, held map[ref]struct{}) bool {
	for ref := range u.refs() {
		_, busy := p.busy[ref]
		_, wanted := held[ref]
		if busy || wanted {
			return true
		}
	}
	return false
}

// run sends t and settles what became of its units. The lock is given back
// meanwhile.
func (p *pool) run(ctx context.Context, t *transaction) {
	err := errors.New("the request ended in a panic")
	defer func() {
		p.mu.Lock()
		p.settle(ctx, t, err)
	}()
	p.mu.Unlock()
	err = p.send(ctx, t.input())
}
