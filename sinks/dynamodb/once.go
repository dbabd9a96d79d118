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
	"github.com/sluicehq/sluice/dynamo"
	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/quorum"
)

const (
	slowCommit = 300 * time.Millisecond // a commit of Once keeps the next one from starting for so long
	onceLinger = time.Millisecond       // shorter than others': a commit waits for the one before it as well
)

// Once applies a Unit, or finds that it was applied before. When it returns
// nil, all of the Unit is durable but for the Adds that Applied.Dropped names.
//
// Units that are asked for at the same time share transactions: markers beside
// each other, Adds to one item summed up. Transactions of one Store that touch
// the same item run one after another, and what comes meanwhile goes into the
// next one. So a hot counter costs one write a transaction, not one a record,
// and does not conflict with itself. Only a request that takes longer than
// 300 ms is not waited for: then DynamoDB finds the conflict.
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
		return dynamo.Applied{}, fmt.Errorf("dynamodb: unit %s of table %q: %w", u.Marker.Item.Only(u.Marker.Key).Raw(), u.Marker.Table, err)
	}
	return n.applied, nil
}

// once groups the units of concurrent callers into commits. A commit packs its
// units into transactions that touch different items, and sends these at the
// same time. A unit that finds no place goes into the next commit.
//
// One commit runs at a time. So two transactions do not meet at an item, and
// units that come meanwhile are together in the next commit.
type once struct {
	send    func(context.Context, *dynamodb.TransactWriteItemsInput) error
	explain func(error) error // for people
	opt     Options
	batch   *batch.Batcher[*unit]
	asked   atomic.Uint64 // units
	sending chan struct{} // holds one for each request on its way

	mu   sync.Mutex
	slow int // commits that the next one does not wait for
}

func newOnce(send func(context.Context, *dynamodb.TransactWriteItemsInput) error, explain func(error) error, opt Options) *once {
	o := &once{send: send, explain: explain, opt: opt, sending: make(chan struct{}, opt.InFlight)}
	o.batch = batch.New(o.commit, nil, batch.Options{
		MaxItems: opt.InFlight * maxOperations,
		InFlight: opt.InFlight,
		Linger:   cmp.Or(opt.Linger, onceLinger),
		Timeout:  opt.Timeout,
	})
	o.batch.SetInFlight(1)
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
	u.nth = o.asked.Add(1)
	for {
		last := u.err
		u.outcome = outcome{}
		if err := o.batch.Do(ctx, u); err != nil {
			if ctx.Err() != nil && last != nil {
				err = errors.Join(err, last)
			}
			return err
		}
		switch {
		case u.again:
			u.err = last
		case u.wait == 0:
			return nil
		case !pauseParked(ctx, u.wait):
			return fmt.Errorf("not written in time: %w", u.err)
		}
	}
}

// pauseParked waits for d as a handler that gives its place to others. It
// returns false, at once, when ctx would end before.
func pauseParked(ctx context.Context, d time.Duration) bool {
	m := quorum.From(ctx)
	m.Park()
	defer quorum.Unpark([]*quorum.Member{m})
	return backoff.Within(ctx, d)
}

// commit makes one attempt to apply units.
func (o *once) commit(ctx context.Context, units []*unit) []error {
	begin := time.Now()
	timer := time.AfterFunc(slowCommit, func() { o.countSlow(1) })
	defer func() {
		if !timer.Stop() {
			o.countSlow(-1)
		}
	}()
	o.apply(ctx, slices.Clone(units))
	done, tries := map[ref]*unit{}, 0
	for _, u := range units {
		if u.err == nil && !u.again {
			done[u.parts[0].ref] = u
		}
		if u.refused {
			u.tries++
			tries = max(tries, u.tries)
		}
	}
	wait := backoff.Full(o.opt.Backoff, o.opt.Backoff<<10, tries) // for all, so that they come back together
	errs, c := make([]error, len(units)), batch.Commit{}
	for i, u := range units {
		if d := done[u.parts[0].ref]; u.again && d != nil && d.marker.Table == u.marker.Table && d.marker.Item.Equal(u.marker.Item) {
			u.again, u.applied.Before = false, true
		}
		switch errs[i] = u.err; {
		case u.again:
			continue
		case u.refused && u.tries < o.opt.Attempts:
			u.wait, errs[i] = wait, nil
			continue
		case u.err != nil:
			c.Failed++
		}
		c.Items++
	}
	if hook := o.opt.Hooks.Committed; hook != nil && c.Items > 0 {
		c.Took = time.Since(begin)
		hook(c)
	}
	return errs
}

// countSlow lets as many more commits run as there are slow ones.
func (o *once) countSlow(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.slow += n
	o.batch.SetInFlight(1 + o.slow)
}

// apply sends units, the oldest first, so that each has its turn. Where one of
// several must be to blame for what became of all, it sends each half apart.
func (o *once) apply(ctx context.Context, units []*unit) {
	slices.SortFunc(units, func(a, b *unit) int { return cmp.Compare(a.nth, b.nth) })
	var sending sync.WaitGroup
	ts := pack(units)
	for _, t := range ts {
		sending.Go(func() { o.run(ctx, t) })
	}
	sending.Wait()
	for _, t := range ts {
		if apart := o.settle(t); len(apart) > 0 {
			o.apply(ctx, apart[:len(apart)/2])
			o.apply(ctx, apart[len(apart)/2:])
		}
	}
}

// run sends t. What it calls may panic, or end its goroutine.
func (o *once) run(ctx context.Context, t *transaction) {
	select {
	case o.sending <- struct{}{}:
		defer func() { <-o.sending }()
	case <-ctx.Done():
	}
	if t.err = context.Cause(ctx); t.err != nil {
		return
	}
	t.err = &sluice.PanicError{}
	defer func() {
		if p := recover(); p != nil {
			t.err = &sluice.PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	t.err = o.send(ctx, t.input())
}
