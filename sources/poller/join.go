package poller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice/internal/parallel"
	"github.com/sluicehq/sluice/sources/poller/internal/lineage"
	"github.com/sluicehq/sluice/state"
)

var (
	errNeverRead = errors.New("the service does not know it any more, and nothing of it was read")
	errUnlisted  = errors.New("the shards cannot be listed now")
)

// join stores where the stream's reading begins, and fills its forest. A stream that
// was begun before needs no listing: shards with a position continue at once.
//
// At the start of the poller (first) an error ends join. Later join retries every
// failure, and a new stream is read from its beginning, whatever Options.Start says,
// because an earlier stream was read. It then returns a *StreamError when the view type
// lacks images that a route needs, errNeverRead, or ctx's error.
func (s *stream) join(ctx context.Context, first bool) error {
	call := s.store
	if first {
		call = s.storeOnce
	} else if err := call(ctx, "start", s.loadStart); err != nil {
		return err
	}
	l, err := s.firstList(ctx, first)
	s.unlisted = errors.Is(err, errUnlisted)
	if err != nil && !s.unlisted {
		return err
	}
	if !first && s.denials == 0 && !s.unlisted { // tryAll has looked at the first
		if err := s.p.checkView(s.name, s.table, l.view); err != nil {
			return err
		}
	}
	var latest map[string]string
	if s.start == (state.Start{}) {
		if err := call(ctx, "start", func(ctx context.Context) (err error) {
			if first {
				s.start, latest, err = s.firstStart(ctx, l)
			} else {
				s.start, err = s.p.store.start(ctx, s.id, state.Start{Position: TrimHorizon})
			}
			return err
		}); err != nil {
			return err
		}
	}
	var stored []state.Shard
	if err := call(ctx, "shards", func(ctx context.Context) (err error) {
		stored, err = s.p.store.shards(ctx, s.id)
		return err
	}); err != nil {
		return err
	}
	if !s.unlisted && s.denials > 0 && len(stored) == 0 { // it was begun, but no shard of it
		return errNeverRead
	}
	s.fill(l, stored, latest)
	return nil
}

// loadStart reads the start of the stream; zero if it was not begun.
func (s *stream) loadStart(ctx context.Context) (err error) {
	s.start, err = s.p.store.start(ctx, s.id, state.Start{})
	if errors.Is(err, state.ErrNoStart) {
		return nil
	}
	return err
}

// firstList lists the shards. If the stream was begun before, a listing may fail:
// firstList then returns errUnlisted. It believes that the service does not know
// the stream only of a replaced stream. Then only the stored shards remain.
// Otherwise it asks again.
func (s *stream) firstList(ctx context.Context, first bool) (listing, error) {
	begun, tries, wait := s.start != (state.Start{}), 0, soon
	if begun {
		tries = childrenTries
	}
	for {
		l, err := s.discovery.pages(ctx, nil, tries)
		switch {
		case err == nil:
			s.denials = 0
			return l, nil
		case first:
			return l, &StreamError{Stream: s.name, Action: describeStream, Err: err}
		case ctx.Err() != nil:
			return l, ctx.Err()
		}
		s.troubled(err)
		if begun && classify(err) != notFound {
			return l, errUnlisted
		}
		s.denials++
		if s.isReplaced() && s.denials >= sureAfter {
			if !begun {
				return l, errNeverRead
			}
			return listing{}, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			wait = min(2*wait, s.p.o.DiscoverEvery)
		case <-s.wake:
			wait, s.denials = soon, 0
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// store retries a call to the store until it succeeds or ctx ends.
func (s *stream) store(ctx context.Context, name string, call func(context.Context) error) error {
	return s.p.until(ctx, s.shard(""), name, func() error { return call(ctx) })
}

func (s *stream) storeOnce(ctx context.Context, name string, call func(context.Context) error) error {
	if err := call(ctx); err != nil {
		return fmt.Errorf("poller: %v: call of the store: %s: %w", s.name, name, err)
	}
	return nil
}

// fill fills the forest with listed and stored shards.
func (s *stream) fill(l listing, stored []state.Shard, latest map[string]string) {
	s.forest.StartedAt(s.start.At)
	if s.unlisted {
		l.began = time.Time{} // a failed listing is not complete
	}
	fresh := s.forest.Merge(l.shards, l.began)
	s.forest.Remember(stored)
	s.storedAt = time.Now()
	for id, it := range latest {
		s.forest.StartLatest(id, it)
	}
	s.ready = true
	if s.unlisted {
		s.forest.AwaitListing(stored)
		s.p.o.Logger.Warn("stream is read on where its positions are: its shards cannot be listed now", "table", s.table, "stream", s.id.ARN, "stored", len(stored))
		return
	}
	s.listed(l.status)
	s.p.discovered(s.table, l, fresh, nil)
	attrs := []any{"table", s.table, "stream", s.id.ARN, "shards", len(l.shards), "stored", len(stored), "start", s.start.Position}
	if s.start.Position == Latest {
		attrs = append(attrs, "since", s.start.At)
	}
	s.p.o.Logger.Info("stream found", attrs...)
}

// firstStart stores where the stream's reading begins. At LATEST it first takes an
// iterator for every open shard. The start is the moment after: later records are
// behind those iterators, and not in closed shards. The stored time lets a restart
// find the same records from the horizon.
func (s *stream) firstStart(ctx context.Context, l listing) (state.Start, map[string]string, error) {
	var latest map[string]string
	date := l.date
	if s.p.o.Start == Latest {
		latest, date = s.latest(ctx, l)
	}
	// The service's time has whole seconds. A random part tells this start from that of
	// another worker in the same second.
	want := state.Start{Position: s.p.o.Start, At: date.Add(-lineage.ClockMargin - rand.N(time.Second)).UTC()}
	got, err := s.p.store.start(ctx, s.id, want)
	if err != nil {
		return got, nil, err
	}
	if got.Position != want.Position || !got.At.Equal(want.At) {
		return got, nil, nil // another worker was first: its start counts
	}
	if want.Position == Latest {
		var closed []string
		for _, sh := range l.shards {
			if sh.Closed {
				closed = append(closed, sh.ID)
			}
			if sh.Parent != "" { // closed, also when this listing leaves it out
				closed = append(closed, sh.Parent)
			}
		}
		if len(closed) > 0 {
			err = s.p.store.finish(ctx, s.id, closed...)
		}
	}
	return got, latest, err
}

// latest returns LATEST iterators of the open shards, and the service's time when
// they were complete. A shard without an iterator is read from the horizon.
func (s *stream) latest(ctx context.Context, l listing) (map[string]string, time.Time) {
	var mu sync.Mutex
	iterators, date := make(map[string]string), l.date
	parallel.Do(len(l.shards), startCalls, func(i int) {
		sh := &l.shards[i]
		if sh.Closed {
			return
		}
		call, cancel := context.WithTimeout(ctx, s.p.o.CallTimeout)
		defer cancel()
		out, err := s.p.api.GetShardIterator(call, &dynamodbstreams.GetShardIteratorInput{
			StreamArn: &s.id.ARN, ShardId: &sh.ID, ShardIteratorType: types.ShardIteratorTypeLatest,
		})
		if err != nil || aws.ToString(out.ShardIterator) == "" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		iterators[sh.ID] = *out.ShardIterator
		if t := serviceTime(out.ResultMetadata); t.After(date) {
			date = t
		}
	})
	return iterators, date
}
