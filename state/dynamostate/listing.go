package dynamostate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

// listAll is how often Shards reads all rows. In between it leaves out the first ones that
// are finished and released: they stay as they are. They would be most of its reads: a
// shard ends after about four hours, and its row is kept for two days.
const listAll = time.Hour

// finishedShards are the first shards of a partition, by id.
type finishedShards struct {
	shards []state.Shard
	listed time.Time // all rows of the partition
}

// Shards implements [state.Store]; they are ordered by id. Finished shards are as they
// were up to an hour ago.
func (s *Store) Shards(ctx context.Context, st state.Stream) ([]state.Shard, error) {
	if err := errors.Join(ctx.Err(), st.Validate()); err != nil {
		return nil, err
	}
	var parts [spread][]state.Shard
	g, ctx := errgroup.WithContext(ctx)
	for i := range parts {
		g.Go(func() (err error) {
			parts[i], err = s.listPart(ctx, st, shardsOf(st, uint32(i)))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all := slices.Concat(parts[:]...)
	slices.SortFunc(all, func(a, b state.Shard) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

func (s *Store) listPart(ctx context.Context, st state.Stream, partition string) ([]state.Shard, error) {
	s.mu.Lock()
	known := s.finished[partition]
	s.mu.Unlock()
	if time.Since(known.listed) >= listAll || st.ARN == staterules.Jobs { // a later job may sort before the finished ones
		known = finishedShards{listed: time.Now()}
	}
	after, all := "", slices.Clone(known.shards)
	if n := len(all); n > 0 {
		after = all[n-1].ID
	}
	for row, err := range s.rows.List(ctx, partition, after, 0) {
		if err != nil {
			return nil, err
		}
		sh, err := shardOf(row)
		if err != nil {
			return nil, err
		}
		all = append(all, sh.Shard)
	}
	n := slices.IndexFunc(all, func(sh state.Shard) bool { return !sh.Position.Finished || sh.Owner != "" })
	if n < 0 {
		n = len(all)
	}
	known.shards = slices.Clone(all[:n])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished[partition] = known
	return all, nil
}

// unlist removes a shard from the finished ones.
func (s *Store) unlist(k rows.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.finished[k.Partition]
	known.shards = slices.DeleteFunc(slices.Clone(known.shards), func(sh state.Shard) bool { return sh.ID == k.Sort })
	s.finished[k.Partition] = known
}

// relist makes the next Shards of a stream read all rows.
func (s *Store) relist(st state.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range uint32(spread) {
		delete(s.finished, shardsOf(st, i))
	}
}
