package dynamodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/commits"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/internal/outcomes"
	"github.com/sluicehq/sluice/internal/quorum"
)

const (
	slowTransaction = 300 * time.Millisecond // others wait this long for its items; a slower one may not have reached DynamoDB
	onceLinger      = time.Millisecond       // shorter than for other commits: a unit waits for transactions as well
)

// Once applies a Unit, or finds that it was applied before. When it returns nil,
// the Unit is durable, except for the Adds in Applied.Dropped.
//
// Concurrent units share transactions: markers side by side, and Adds to one item
// summed. Transactions of one Store that touch the same item run one after
// another, and units that arrive meanwhile go into the next one. So a hot counter
// costs one write per transaction, not per record, and does not conflict with
// itself. Units of other items do not wait for it. After 300 ms nobody waits for a
// transaction: DynamoDB then detects the conflict.
//
// A failed condition of Ops is a [*dynamo.ConditionError] with the indexes in
// u.Ops. An impossible Unit is sluice.Permanent: it touches an item twice, has
// more than 100 operations, adds to a value that is not a number, or makes an item
// too large. Any other error may be temporary. It is then unknown whether the Unit
// was applied; Once with the same marker finds out.
//
// If a response is lost, the next attempt finds the marker. Then Applied.Before is
// true although this very call has written.
//
// If ctx ends before the Unit is sent, the Unit is withdrawn; afterwards Once
// waits for the real result. Temporary refusals are repeated up to
// Options.Attempts times, within Options.Timeout.
func (s *Store) Once(ctx context.Context, u dynamo.Unit) (dynamo.Applied, error) {
	n, err := s.newUnit(u)
	if err != nil {
		err = sluice.Permanent(err)
	} else {
		err = s.once.do(ctx, n)
	}
	if err != nil {
		return dynamo.Applied{}, fmt.Errorf("dynamodb: unit %s of table %q: %w", keyhash.Item(u.Marker.Item.Only(u.Marker.Key)), u.Marker.Table, err)
	}
	return n.applied, nil
}

// once groups the units of concurrent callers into commits. A commit packs its
// units into transactions that touch different items, and starts these. A unit is
// done when its own transaction has ended. A unit that needs an item of another
// transaction waits for that one, and goes into a later commit.
type once struct {
	send    func(context.Context, *dynamodb.TransactWriteItemsInput) error
	explain func(error) error // adds advice to errors
	opt     Options
	batch   *batch.Batcher[*unit]
	commits *commits.Commits
	asked   atomic.Uint64 // number of units
	sending chan struct{} // one element per running transaction

	mu      sync.Mutex
	holders map[ref]*step // of the items that running transactions hold
}

func newOnce(send func(context.Context, *dynamodb.TransactWriteItemsInput) error, explain func(error) error, opt Options) *once {
	o := &once{send: send, explain: explain, opt: opt, commits: commits.Of(opt.Metrics, opt.Sink), sending: make(chan struct{}, opt.InFlight), holders: map[ref]*step{}}
	o.batch = batch.New(o.commit, nil, batch.Options{
		MaxItems: opt.InFlight * maxOperations,
		InFlight: 1,
		Linger:   cmp.Or(opt.Linger, onceLinger),
		Timeout:  opt.Timeout,
		Untraced: true, // its transactions are: see run
	})
	return o
}

// transactOnce sends a transaction for Once. It repeats it unchanged only after a
// lost response. After any other failure the transaction must change first.
func (s *Store) transactOnce(ctx context.Context, in *dynamodb.TransactWriteItemsInput) error {
	return s.transact(ctx, in, repeated{attempts: 3, backoff: s.opt.Backoff, again: func(err error) bool {
		m := awserror.Of(err)
		return m.Passes() && m != awserror.Throttled
	}})
}

// do returns when u was applied or has failed.
func (o *once) do(ctx context.Context, u *unit) error {
	ctx, cancel := context.WithTimeout(ctx, o.opt.Timeout)
	defer cancel()
	u.nth, u.member, u.ctx = o.asked.Add(1), quorum.From(ctx), quorum.Traced(ctx)
	for {
		last := u.err
		u.outcome = outcome{}
		err := o.batch.Do(ctx, u)
		if err == nil {
			err = o.await(ctx, u)
		}
		switch {
		case err != nil && ctx.Err() != nil && last != nil:
			return errors.Join(err, last)
		case err != nil:
			return err
		case u.again:
			u.err = last
		case u.late && last != nil && !errors.Is(last, errBudget): // a budget may get units back
			return errors.Join(u.err, last)
		case u.wait == 0:
			return u.err
		case !pauseParked(ctx, u.wait):
			return fmt.Errorf("not written in time: %w", u.err)
		}
	}
}

// await waits, parked, for the end of u's transaction, or until the transaction
// before u frees its items. If ctx ends first, it withdraws u there.
func (o *once) await(ctx context.Context, u *unit) error {
	u.member.Park()
	if u.sent {
		<-u.at.ended
		return nil
	}
	select {
	case <-u.at.freed:
	case <-ctx.Done():
		if o.withdraw(u) {
			unpark([]*unit{u})
			return fmt.Errorf("not sent: %w", context.Cause(ctx))
		}
		<-u.at.freed
	}
	return nil
}

func (o *once) withdraw(u *unit) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := u.at
	i := slices.Index(t.behind, u)
	if i >= 0 {
		t.behind = slices.Delete(t.behind, i, i+1)
	}
	return i >= 0
}

// pauseParked waits for d while the handler's slot is free for others. It returns
// false at once if ctx would end before.
func pauseParked(ctx context.Context, d time.Duration) bool {
	m := quorum.From(ctx)
	m.Park()
	defer quorum.Unpark([]*quorum.Member{m})
	return backoff.Within(ctx, d)
}

// commit starts transactions for units, oldest first. While the allowed number is
// running, new units gather for the next commit.
func (o *once) commit(ctx context.Context, units []*unit) []error {
	slices.SortFunc(units, func(a, b *unit) int { return cmp.Compare(a.nth, b.nth) })
	deadline, _ := ctx.Deadline() // ctx itself ends with this commit
	for _, t := range o.start(units) {
		select {
		case o.sending <- struct{}{}:
			go func() {
				defer func() { <-o.sending }()
				o.run(deadline, t)
			}()
		case <-ctx.Done():
			go o.run(deadline, t) // run reports a timeout itself
		}
	}
	return nil
}

func (o *once) start(units []*unit) []*transaction {
	o.mu.Lock()
	defer o.mu.Unlock()
	ts, places := pack(units, o.holders)
	for i, u := range units {
		if u.at, u.sent = places[i], !u.again; u.again {
			u.at.behind = append(u.at.behind, u)
		}
	}
	return ts
}

// run makes one attempt to apply the units of t, and wakes all waiting callers.
// User code in it may panic or end its goroutine.
func (o *once) run(deadline time.Time, t *transaction) {
	begin, returned := time.Now(), false
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	slow := time.AfterFunc(slowTransaction, func() { o.free(t) })
	defer func() {
		slow.Stop()
		unpark(t.units)
		o.free(t)
		close(t.ended)
	}()
	ctx, traced := o.trace(ctx, t.units)
	defer traced()
	defer func() {
		if !returned {
			t.fail(outcome{err: o.explain(&outcomes.Panic{Value: recover(), Stack: debug.Stack()})})
		}
	}()
	o.apply(ctx, t)
	if done, failed := o.judge(t); done > 0 {
		o.commits.Add(done, failed, time.Since(begin))
	}
	returned = true
}

// trace begins the span of a transaction of units, if they are traced, and returns
// what ends it.
func (o *once) trace(ctx context.Context, units []*unit) (context.Context, func()) {
	callers := make([]context.Context, len(units))
	for i, u := range units {
		callers[i] = u.ctx
	}
	ctx, end := quorum.Trace(ctx, o.opt.Sink, callers)
	return ctx, func() {
		errs := make([]error, len(units))
		for i, u := range units {
			errs[i] = u.err
		}
		end(errs)
	}
}

// apply sends t. If one of several units may be the cause of a failure, it sends
// each half separately.
func (o *once) apply(ctx context.Context, t *transaction) {
	if t.err = context.Cause(ctx); t.err == nil {
		t.err = o.send(ctx, t.input())
	}
	t.late = tooLate(ctx, t.err)
	apart := o.settle(t)
	if len(apart) == 0 {
		return
	}
	for _, half := range [][]*unit{apart[:len(apart)/2], apart[len(apart)/2:]} {
		ts, _ := pack(half, map[ref]*step{})
		for _, t := range ts {
			o.apply(ctx, t)
		}
	}
}

// judge decides which units of t are retried. Units behind t with the marker of an
// applied unit need no request. It counts units that are done.
func (o *once) judge(t *transaction) (done, failed int) {
	applied, tries := map[ref]*unit{}, 0
	for _, u := range t.units {
		if u.err == nil && !u.again {
			applied[u.parts[0].ref] = u
		}
		if u.refused {
			u.tries++
			tries = max(tries, u.tries)
		}
	}
	wait := backoff.Full(o.opt.Backoff, o.opt.Backoff<<10, tries) // the same for all, so that they return together
	for _, u := range t.units {
		switch {
		case u.again:
			continue
		case u.refused && u.tries < o.opt.Attempts:
			u.wait = wait
			continue
		case u.err != nil:
			failed++
		}
		done++
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, u := range t.behind {
		if a := applied[u.parts[0].ref]; a != nil && a.marker.Table == u.marker.Table && a.marker.Item.Equal(u.marker.Item) {
			u.again, u.applied.Before = false, true
			done++
		}
	}
	return done, failed
}

// free frees the items of t for the units behind it, once.
func (o *once) free(t *transaction) {
	o.mu.Lock()
	refs, behind := t.refs, t.behind
	t.refs, t.behind = nil, nil // from now on no unit can be withdrawn from t, or wait behind it
	for _, r := range refs {
		delete(o.holders, r)
	}
	o.mu.Unlock()
	if refs != nil {
		unpark(behind)
		close(t.freed)
	}
}

// unpark runs before units are woken; see [quorum.Unpark].
func unpark(units []*unit) {
	members := make([]*quorum.Member, len(units))
	for i, u := range units {
		members[i] = u.member
	}
	quorum.Unpark(members)
}
