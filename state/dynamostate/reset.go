package dynamostate

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

// Applications returns the names of the stored applications in order.
func (s *Store) Applications(ctx context.Context) (names []string, err error) {
	for row, err := range s.rows.List(ctx, applications, "", 0) {
		if err != nil {
			return nil, err
		}
		names = append(names, row.Sort)
	}
	return names, nil
}

// ResetShards deletes the positions of shards: each starts from its beginning. It
// returns an error while a worker of the application lives, which takes some
// seconds to tell.
func (s *Store) ResetShards(ctx context.Context, st state.Stream, shardIDs ...string) error {
	if err := errors.Join(ctx.Err(), st.Validate()); err != nil {
		return err
	}
	if err := s.quiet(ctx, st.Application); err != nil {
		return err
	}
	defer s.relist(st)
	return each(ctx, shardIDs, func(ctx context.Context, id string) error { return s.remove(ctx, shardKey(st, id)) })
}

// ResetStream deletes a stream and stores its new start. The zero start stores
// nothing, as if the stream was never read. If it fails half way, the stream cannot
// be read until a ResetStream succeeds. It returns an error while a worker of the
// application lives, which takes some seconds to tell.
func (s *Store) ResetStream(ctx context.Context, st state.Stream, start state.Start) error {
	if err := errors.Join(ctx.Err(), st.Validate()); err != nil {
		return err
	}
	if start != (state.Start{}) {
		if err := start.Validate(); err != nil {
			return err
		}
	}
	if err := s.quiet(ctx, st.Application); err != nil {
		return err
	}
	k := streamKey(st)
	row, before, err := fetch[storedStream](ctx, s.rows, k)
	if err != nil || !row.Exists() && start == (state.Start{}) {
		return err
	}
	next := storedStream{Position: start.Position, At: start.At, Generation: rand.Text()}
	if err := s.replace(ctx, k, encode(storedStream{Resetting: true, Generation: next.Generation})); err != nil {
		return err
	}
	// Who claimed a shard before it could see that has joined before.
	if err := s.quiet(ctx, st.Application); err != nil {
		if !before.Resetting {
			err = errors.Join(err, s.replace(ctx, k, encode(before)))
		}
		return err
	}
	s.relist(st)
	shards, err := s.Shards(ctx, st)
	if err != nil {
		return err
	}
	ids := make([]string, len(shards))
	for i, sh := range shards {
		ids[i] = sh.ID
	}
	if err := each(ctx, ids, func(ctx context.Context, id string) error { return s.remove(ctx, shardKey(st, id)) }); err != nil {
		return err
	}
	s.began(st, next.Generation)
	return s.replace(ctx, k, encode(next))
}

// quiet returns an error if a worker of the application lives. It watches those
// that have not left, and fences the silent.
func (s *Store) quiet(ctx context.Context, app string) error {
	var doubtful []string
	for m, err := range list[storedMember](ctx, s.rows, membersOf(app), "", 0) {
		if err != nil {
			return err
		}
		if !m.v.Fenced {
			doubtful = append(doubtful, m.row.Sort)
		}
	}
	var failed error
	for begun := time.Now(); ; {
		doubtful = slices.DeleteFunc(doubtful, func(owner string) bool {
			living, err := s.members.living(ctx, app, owner, true)
			failed = cmp.Or(failed, err)
			return err == nil && !living
		})
		switch {
		case failed != nil || len(doubtful) == 0:
			return failed
		case time.Since(begun) > 2*staterules.OwnerTimeout:
			return fmt.Errorf("worker %s of application %s runs: stop it first", doubtful[0], app)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookDoubtful):
		}
	}
}
