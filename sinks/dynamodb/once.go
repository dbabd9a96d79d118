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
	"github.com/sluicehq/sluice/internal/quorum"
)

const (
	slowTransaction = 300 * time.Millisecond // others wait for its items so long; by then it hangs, and may not have reached DynamoDB
	onceLinger      = time.Millisecond       // shorter than others': a unit waits for transactions as well
)

// Once applies a Unit, or finds that it was applied before. When it returns
// nil, all of the Unit is durable but for the Adds that Applied.Dropped names.
//
// Units that are asked for at the same time share transactions: markers beside
// each other, Adds to one item summed up. Transactions of one Store that touch
// the same item run one after another, and what comes meanwhile goes into the
// next one. So a hot counter costs one write a transaction, not one a record,
// and does not conflict with itself. Units of other items do not wait for it.
// A transaction that takes longer than 300 ms is not waited for: then DynamoDB
// finds the conflict.
//
// A condition of Ops that does not hold is a [*dynamo.ConditionError] with the
// indexes in u.Ops. What will never succeed is sluice.Permanent: an item that
// is touched twice, more than 100 operations, an Add to what is no number, an
// item that would become too large. Any other error may pass; whether the Unit
// was applied is then unknown, and Once with the same marker tells.
//
// When an answer is lost, the next attempt finds the marker: then
// Applied.Before is true although this very call has written.
//
// When ctx ends before the Unit is sent, it is withdrawn; once it is sent, Once
// waits for the true result. What DynamoDB refuses for the moment is sent up to
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
// units into transactions that touch different items, and starts these. A unit
// is done when its own transaction has ended. A unit that needs an item of
// another transaction waits for that one, and goes into a later commit.
type once struct {
	send    func(context.Context, *dynamodb.TransactWriteItemsInput) error
	explain func(error) error // for people
	opt     Options
	batch   *batch.Batcher[*unit]
	commits *commits.Commits
	asked   atomic.Uint64 // units
	sending chan struct{} // holds one for each transaction on its way

	mu      sync.Mutex
	holders map[ref]*step // of the items that transactions have not given free
}

func newOnce(send func(context.Context, *dynamodb.TransactWriteItemsInput) error, explain func(error) error, opt Options) *once {
	o := &once{send: send, explain: explain, opt: opt, commits: commits.Of(opt.Metrics, opt.Sink), sending: make(chan struct{}, opt.InFlight), holders: map[ref]*step{}}
	o.batch = batch.New(o.commit, nil, batch.Options{
		MaxItems: opt.InFlight * maxOperations,
		InFlight: 1,
		Linger:   cmp.Or(opt.Linger, onceLinger),
		Timeout:  opt.Timeout,
	})
	return o
}

// transactOnce is how Once sends. Only lost answers are repeated as they are;
// after anything else there is something to change first.
func (s *Store) transactOnce(ctx context.Context, in *dynamodb.TransactWriteItemsInput) error {
	return s.transact(ctx, in, repeated{attempts: 3, backoff: s.opt.Backoff, again: func(err error) bool {
		m := awserror.Of(err)
		return m.Passes() && m != awserror.Throttled
	}})
}

// do returns when u is applied or has failed.
func (o *once) do(ctx context.Context, u *unit) error {
	ctx, cancel := context.WithTimeout(ctx, o.opt.Timeout)
	defer cancel()
	u.nth, u.member = o.asked.Add(1), quorum.From(ctx)
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
		case u.wait == 0:
			return u.err
		case !pauseParked(ctx, u.wait):
			return fmt.Errorf("not written in time: %w", u.err)
		}
	}
}

// await waits, parked, until the transaction of u has ended, or until the one that
// u is behind gives its items free. When ctx ends first, u is withdrawn from there.
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

// pauseParked waits for d as a handler that gives its place to others. It
// returns false, at once, when ctx would end before.
func pauseParked(ctx context.Context, d time.Duration) bool {
	m := quorum.From(ctx)
	m.Park()
	defer quorum.Unpark([]*quorum.Member{m})
	return backoff.Within(ctx, d)
}

// commit starts transactions for units, the oldest first, so that each has its
// turn. While as many as are allowed are on their way, what comes gathers for
// the next commit.
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
			go o.run(deadline, t) // which says that its time is over
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

// run makes one attempt to apply the units of t, and wakes all who wait. What it
// calls may panic, or end its goroutine.
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
	defer func() {
		if !returned {
			t.fail(outcome{err: o.explain(&sluice.PanicError{Value: recover(), Stack: debug.Stack()})})
		}
	}()
	o.apply(ctx, t)
	if done, failed := o.judge(t); done > 0 {
		o.commits.Add(done, failed, time.Since(begin))
	}
	returned = true
}

// apply sends t. Where one of several units must be to blame for what became of
// all, it sends each half apart.
func (o *once) apply(ctx context.Context, t *transaction) {
	if t.err = context.Cause(ctx); t.err == nil {
		t.err = o.send(ctx, t.input())
	}
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

// judge says which units of t are tried again, and that those behind it with the
// marker of one that is applied need no request. It counts those that are done.
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
	wait := backoff.Full(o.opt.Backoff, o.opt.Backoff<<10, tries) // for all, so that they come back together
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

// free gives the items of t to the units behind it, the first time.
func (o *once) free(t *transaction) {
	o.mu.Lock()
	refs, behind := t.refs, t.behind
	t.refs, t.behind = nil, nil // from now on no unit can be withdrawn, or come behind t
	for _, r := range refs {
		delete(o.holders, r)
	}
	o.mu.Unlock()
	if refs != nil {
		unpark(behind)
		close(t.freed)
	}
}

// unpark comes before units are woken, for all: see [quorum.Unpark].
func unpark(units []*unit) {
	members := make([]*quorum.Member, len(units))
	for i, u := range units {
		members[i] = u.member
	}
	quorum.Unpark(members)
}
