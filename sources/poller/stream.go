package poller

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice/sources/poller/internal/lineage"
	"github.com/sluicehq/sluice/state"
)

const (
	soon        = 200 * time.Millisecond // before the next listing when the forest is unsure; doubled each time
	heldRetry   = 500 * time.Millisecond // for a shard that another owner has
	deadlyRetry = 10 * time.Second       // for a shard that ends its workers
	fewLooks    = 3                      // child listings at a time; for more, a full listing is cheaper
	goneRetry   = 5 * time.Second        // for a shard that is listed but was denied, or failed
	// storedEvery is between two reads of a shared store's shards by a worker that waits
	// for no shard. Who waits for one reads them at each listing.
	storedEvery = 5 * time.Minute
)

// stream reads all shards of one stream, each in its turn.
type stream struct {
	p         *Poller
	name      Stream // as given
	table     string
	id        state.Stream
	start     state.Start
	api       *ownAPI
	discovery *discovery
	forest    *lineage.Forest
	wake      chan struct{}   // replaced was set; has room for one
	bell      chan<- struct{} // rung when the stream seems to have come to its end; nil: nobody listens

	ready   bool // its start is stored and the forest filled
	running int
	looking int                // running listings
	asking  bool               // for unlisted parents
	stop    context.CancelFunc // of run
	listAt  time.Time
	soon    time.Duration
	failing bool    // the last listing failed
	errs    []error // of the end of run
	ending          // see generation.go
	aged            // see forget.go

	due      map[string]*gauge // by shard; see due.go
	children sync.WaitGroup    // goroutines that report to run
	unlisted bool              // begun from stored shards: the first listing is still to come
	storedAt time.Time         // last read of the stored shards

	mu       sync.Mutex // guards the fields below
	heardAt  time.Time  // last good listing; at first, the start of the stream
	broke    trouble    // a panic, until a later listing is merged
	lists    trouble    // of discovery, until it succeeds
	status   types.StreamStatus
	replaced bool            // by a later stream of its table
	halted   bool            // a shard halted at a gap
	asks     trouble         // of asking for a parent, until it succeeds
	known    []lineage.Shard // after the last listing, or the last end of a shard
}

// outcome is the result of a worker.
type outcome struct {
	id  string
	end End
	err error
}

// found is the result of a full listing, or of a listing of one shard's children.
type found struct {
	listing
	parent string // whose children; empty: full listing
	round  int    // stream.round at the request
	read   bool   // stored was read
	stored []state.Shard
	err    error
	asked  *answers // verdicts on parents; then all other fields are empty
}

// run starts shards as they become ready until ctx ends, and returns when all
// their workers have. It also returns when the stream was replaced and nothing is
// left to read. It returns errNeverRead if no record was read.
func (s *stream) run(ctx context.Context) error {
	ctx, s.stop = context.WithCancel(ctx)
	t, endTerms := s.p.terms(ctx)
	defer endTerms()
	ends, finds := make(chan outcome), make(chan found)
	defer s.clear(ends, finds)
	defer s.p.lineage(Lineage{Table: s.table, StreamARN: s.id.ARN})
	var told Lineage
	s.listAt, s.soon = time.Now().Add(s.p.o.DiscoverEvery), soon
	if s.unlisted {
		s.listAt = time.Now()
	}
	s.remember()
	s.review()
	timer := time.NewTimer(0)
	defer timer.Stop()
	stopped, vacant := ctx.Done(), s.p.owner.vacant()
	for {
		if ctx.Err() != nil && s.running == 0 && s.looking == 0 && !s.asking {
			return errors.Join(s.errs...)
		}
		if s.drained() {
			if s.unlisted && s.forest.Empty() { // it was begun, and no shard of it
				return errNeverRead
			}
			return nil
		}
		s.account()
		if ctx.Err() == nil {
			timer.Reset(time.Until(s.begin(ctx, t, ends)))
		}
		if now := s.lineage(); now != told {
			told = now
			s.p.lineage(now)
		}
		select {
		case <-stopped:
			stopped = nil
			timer.Stop()
		case <-s.wake:
			s.stirred()
			s.soon = soon
			s.review()
		case <-vacant:
			vacant = s.p.owner.vacant()
			s.forest.Hasten(time.Now(), heldRetry)
		case <-timer.C:
			if s.looking == 0 && !time.Now().Before(s.listAt) {
				s.look(ctx, "", finds)
			}
		case o := <-ends:
			s.running--
			s.ended(ctx, o)
			if o.end == EndFinished && ctx.Err() == nil && s.looking < fewLooks && time.Now().Before(s.listAt) {
				s.look(ctx, o.id, finds)
			}
		case f := <-finds:
			if f.asked != nil {
				s.heed(f.asked)
				continue
			}
			s.looking--
			s.merge(f)
			if f.parent == "" && f.err == nil {
				s.ask(ctx, finds)
			}
		}
	}
}

// clear ends the goroutines of run and waits for them, also after a panic, so that
// run can start again.
func (s *stream) clear(ends <-chan outcome, finds <-chan found) {
	s.stop()
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.children.Wait()
	}()
	for {
		select {
		case <-ends:
		case <-finds:
		case <-over:
			s.dismiss()
			return
		}
	}
}

// renew resets the stream. The store has everything that matters.
func (s *stream) renew() {
	s.ready, s.running, s.looking, s.asking, s.errs = false, 0, 0, false, nil
	s.forest, s.aged, s.ending, s.storedAt = lineage.New(), aged{}, ending{}, time.Time{}
}

// lineage returns how far the shards are.
func (s *stream) lineage() Lineage {
	c := s.forest.Count()
	return Lineage{Table: s.table, StreamARN: s.id.ARN, Reading: c.Running, Waiting: c.Waiting, Finished: c.Finished, Halted: c.Halted}
}

// begin starts every shard whose turn it is, and returns when to look again.
func (s *stream) begin(ctx context.Context, t terms, ends chan<- outcome) (next time.Time) {
	ready, next := s.forest.Ready(time.Now())
	for _, id := range ready {
		s.running++
		w := &worker{
			p: s.p, stream: s, shard: s.shard(id), start: s.forest.Begin(id), gauge: s.due[id],
		}
		w.origin = lineage.BeginningOf(id, w.start.First, s.start)
		s.children.Go(func() {
			end, err := w.run(ctx, t)
			ends <- outcome{id, end, err}
		})
	}
	if s.looking == 0 && (next.IsZero() || s.listAt.Before(next)) {
		next = s.listAt
	}
	if next.IsZero() {
		next = time.Now().Add(s.p.o.DiscoverEvery)
	}
	return next
}

// shard names one of the stream's shards.
func (s *stream) shard(id string) Shard { return Shard{Table: s.table, StreamARN: s.id.ARN, ID: id} }

// ended notes how a shard's worker came back.
func (s *stream) ended(ctx context.Context, o outcome) {
	shard := s.shard(o.id)
	s.due[o.id].unread(o.err)
	s.stirred()
	how, wait := lineage.Stopped, time.Duration(0)
	switch o.end {
	case notBegun:
		retry := heldRetry
		if errors.Is(o.err, state.ErrDeadly) {
			retry = deadlyRetry
		}
		s.forest.Ended(o.id, lineage.NotBegun, time.Now().Add(retry))
		if ctx.Err() == nil {
			s.p.notClaimed(shard, o.err, retry)
		}
		return
	case EndFinished:
		how = lineage.Finished
		s.soon = soon
	case EndGone:
		how, wait = lineage.Denied, goneRetry
		s.soon = soon
	case EndHalted:
		how = lineage.Halted
		s.halt(shard)
	case EndLost, EndMoved:
		wait = heldRetry
	case EndFailed:
		wait = goneRetry
		if ctx.Err() != nil {
			s.errs = append(s.errs, o.err)
		}
		s.due[o.id].broke(o.err)
	}
	s.forest.Ended(o.id, how, time.Now().Add(wait))
	s.remember()
	s.review()
	s.p.ended(shard, o.end, o.err)
}

// halt says that a shard is left where a gap begins.
func (s *stream) halt(shard Shard) {
	s.p.health.halt(shard)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halted = true
}

// look lists all shards, or the children of one, in the background.
func (s *stream) look(ctx context.Context, parent string, finds chan<- found) {
	s.looking++
	f := found{parent: parent, round: s.round}
	f.read = parent == "" && (s.p.owner.silent == 0 || s.forest.Count().Waiting > 0 || time.Since(s.storedAt) >= storedEvery)
	forget := s.forget
	s.children.Go(func() {
		if err := recovered(func() (err error) {
			if parent != "" {
				f.listing, err = s.discovery.children(ctx, parent)
			} else if f.listing, err = s.discovery.list(ctx); err == nil {
				s.forgetRows(ctx, forget, f.listing)
				if f.read {
					f.stored, err = s.p.store.shards(ctx, s.id)
				}
			}
			return err
		}); err != nil {
			f.err = err
		}
		finds <- f
	})
}

// merge merges a listing into the forest and plans the next one.
func (s *stream) merge(f found) {
	fresh := 0
	if f.err == nil {
		if s.failing { // listings that failures have delayed come soon
			s.failing, s.soon = false, soon
		}
		fresh = s.forest.Merge(f.shards, f.began)
		if f.read {
			s.storedAt = time.Now()
			s.forest.Remember(f.stored)
			s.p.checkpoints.Check(s.id, f.stored)
		}
		s.listed(f.status)
		s.concluded(f, fresh)
		if f.parent == "" {
			s.weigh(f)
			s.confirmed(f)
		}
	} else if !errors.Is(f.err, context.Canceled) {
		s.failing = true
		s.troubled(f.err)
		s.concluded(f, 0)
	}
	s.p.discovered(s.table, f.listing, fresh, f.err)
	if f.parent == "" {
		s.listAt = time.Now().Add(s.p.o.DiscoverEvery)
		s.soon = min(2*s.soon, s.p.o.DiscoverEvery)
	}
	s.remember()
	s.review()
}

// remember keeps the lineage for [Poller.Lineage]. Not at every change: in a fleet,
// claims of shards that another worker has fail all the time.
func (s *stream) remember() {
	known := s.forest.Shards()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = known
}

// confirmed notes a good listing, and makes the checks that a start from stored
// shards had to skip.
func (s *stream) confirmed(f found) {
	s.mu.Lock()
	s.broke = trouble{}
	s.mu.Unlock()
	if !s.unlisted {
		return
	}
	s.unlisted = false
	if err := s.p.checkView(s.name, s.table, f.view); err != nil {
		s.errs = append(s.errs, err)
		s.stop()
	}
}

// review brings the next listing forward while the forest is unsure.
func (s *stream) review() {
	if !s.forest.Unsure() && !s.confirming() {
		s.soon = soon
		return
	}
	if at := time.Now().Add(s.soon); at.Before(s.listAt) {
		s.listAt = at
	}
}
