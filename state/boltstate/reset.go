package boltstate

import (
	"context"
	"errors"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/sluicehq/sluice/state"
)

// Applications returns the names of the stored applications in order.
func (s *Store) Applications(ctx context.Context) (names []string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = s.db.View(in(nil, func(b *bbolt.Bucket) error {
		return b.ForEachBucket(func(name []byte) error {
			names = append(names, string(name))
			return nil
		})
	}))
	return names, s.explain("list the applications", err)
}

// ResetShards deletes the positions of shards: each starts from its beginning. It
// ignores leases: use it only while no daemon uses the file.
func (s *Store) ResetShards(ctx context.Context, st state.Stream, shardIDs ...string) error {
	if err := errors.Join(ctx.Err(), st.Validate()); err != nil {
		return err
	}
	return s.explain("reset shards of "+st.ARN, s.db.Update(in(streamPath(st, shardsBucket), func(b *bbolt.Bucket) error {
		for _, id := range shardIDs {
			if err := b.Delete([]byte(id)); err != nil {
				return err
			}
		}
		return nil
	})))
}

// ResetStream deletes a stream and stores its new start in the same transaction.
// The zero start stores nothing, as if the stream was never read. Use it only
// while no daemon uses the file.
func (s *Store) ResetStream(ctx context.Context, st state.Stream, start state.Start) error {
	if err := errors.Join(ctx.Err(), st.Validate()); err != nil {
		return err
	}
	if start != (state.Start{}) {
		if err := start.Validate(); err != nil {
			return err
		}
	}
	return s.explain("reset "+st.ARN, s.db.Update(in(appPath(st.Application, streamsBucket), func(streams *bbolt.Bucket) error {
		if err := streams.DeleteBucket([]byte(st.ARN)); err != nil && !errors.Is(err, berrors.ErrBucketNotFound) {
			return err
		}
		if start == (state.Start{}) {
			return nil
		}
		b, err := streams.CreateBucket([]byte(st.ARN))
		if err != nil {
			return err
		}
		return putStart(b, start)
	})))
}
