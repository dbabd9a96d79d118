package boltstate

import (
	"context"
	"encoding/json"
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
	err = s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(appsBucket).ForEachBucket(func(name []byte) error {
			names = append(names, string(name))
			return nil
		})
	})
	if err != nil {
		return nil, s.explain("list the applications", err)
	}
	return names, nil
}

// ResetShards deletes the positions of shards: each starts from its beginning. It
// ignores leases: use it only while no daemon uses the file.
func (s *Store) ResetShards(ctx context.Context, st state.Stream, shardIDs ...string) error {
	if err := errors.Join(ctx.Err(), st.Validate()); err != nil {
		return err
	}
	err := s.db.Update(func(tx *bbolt.Tx) error {
		b := find(tx, streamPath(st, shardsBucket)...)
		if b == nil {
			return nil
		}
		for _, id := range shardIDs {
			if err := b.Delete([]byte(id)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return s.explain("reset shards of "+st.ARN, err)
	}
	return nil
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
	err := s.db.Update(func(tx *bbolt.Tx) error {
		streams := find(tx, []byte(st.Application), streamsBucket)
		if streams == nil {
			return nil
		}
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
		data, err := json.Marshal(storedStart{Position: start.Position, At: start.At})
		if err != nil {
			return err
		}
		return b.Put(startKey, data)
	})
	if err != nil {
		return s.explain("reset "+st.ARN, err)
	}
	return nil
}
