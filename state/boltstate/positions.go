package boltstate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

// The file holds applications → name → streams → ARN → {start, shards → id}.
// Nested buckets keep names apart.
var (
	streamsBucket = []byte("streams")
	shardsBucket  = []byte("shards")
	lettersBucket = []byte("letters")
	labelsBucket  = []byte("labels")
	valuesBucket  = []byte("values")
	startKey      = []byte("start")
)

type storedStart struct {
	Position string    `json:"position"`
	At       time.Time `json:"at,omitzero"`
}

// storedShard is the JSON form of a shard. An older program that stores a shard drops
// fields that it does not know.
type storedShard struct {
	Parent   string `json:"parent,omitempty"`
	Sequence string `json:"sequence,omitempty"`
	Finished bool   `json:"finished,omitempty"`
	Ahead    string `json:"ahead,omitempty"`
	Owner    string `json:"owner,omitempty"`
	Epoch    uint64 `json:"epoch"`
}

// find descends to a bucket; nil if it does not exist.
func find(tx *bbolt.Tx, path ...[]byte) *bbolt.Bucket {
	b := tx.Bucket(appsBucket)
	for _, name := range path {
		if b == nil {
			return nil
		}
		b = b.Bucket(name)
	}
	return b
}

// in returns a transaction that calls do with a bucket, unless the bucket does not exist.
func in(path [][]byte, do func(*bbolt.Bucket) error) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		if b := find(tx, path...); b != nil {
			return do(b)
		}
		return nil
	}
}

// grow descends to a bucket and creates missing ones.
func grow(tx *bbolt.Tx, path ...[]byte) (*bbolt.Bucket, error) {
	b, err := tx.CreateBucketIfNotExists(appsBucket)
	for _, name := range path {
		if err != nil {
			return nil, err
		}
		b, err = b.CreateBucketIfNotExists(name)
	}
	return b, err
}

func appPath(app string, more ...[]byte) [][]byte { return append([][]byte{[]byte(app)}, more...) }

func streamPath(s state.Stream, more ...[]byte) [][]byte {
	return appPath(s.Application, append([][]byte{streamsBucket, []byte(s.ARN)}, more...)...)
}

// getShard returns the zero Shard if it is not stored.
func getShard(b *bbolt.Bucket, id string) (state.Shard, error) {
	if b == nil {
		return state.Shard{}, nil
	}
	data := b.Get([]byte(id))
	if data == nil {
		return state.Shard{}, nil
	}
	var v storedShard
	if err := json.Unmarshal(data, &v); err != nil {
		return state.Shard{}, fmt.Errorf("shard %s: %w", id, err)
	}
	return state.Shard{
		ID: id, Parent: v.Parent, Owner: v.Owner, Epoch: v.Epoch,
		Position: state.Position{Sequence: v.Sequence, Finished: v.Finished, Ahead: v.Ahead},
	}, nil
}

func putShard(b *bbolt.Bucket, sh state.Shard) error {
	data, err := json.Marshal(storedShard{
		Parent: sh.Parent, Owner: sh.Owner, Epoch: sh.Epoch,
		Sequence: sh.Position.Sequence, Finished: sh.Position.Finished, Ahead: sh.Position.Ahead,
	})
	if err != nil {
		return err
	}
	return b.Put([]byte(sh.ID), data)
}

func putStart(b *bbolt.Bucket, start state.Start) error {
	data, err := json.Marshal(storedStart(start))
	if err != nil {
		return err
	}
	return b.Put(startKey, data)
}

// Start implements state.Store.
func (s *Store) Start(ctx context.Context, st state.Stream, want state.Start) (state.Start, error) {
	if err := errors.Join(ctx.Err(), st.Validate()); err != nil {
		return state.Start{}, err
	}
	var have storedStart
	found := false
	read := in(streamPath(st), func(b *bbolt.Bucket) error {
		data := b.Get(startKey)
		if found = data != nil; !found {
			return nil
		}
		return json.Unmarshal(data, &have)
	})
	if err := s.db.View(read); err != nil {
		return state.Start{}, s.explain("read the start of "+st.ARN, err)
	}
	if found {
		return state.Start(have), nil
	}
	if want == (state.Start{}) {
		return state.Start{}, state.ErrNoStart
	}
	if err := want.Validate(); err != nil {
		return state.Start{}, err
	}
	err := s.db.Update(func(tx *bbolt.Tx) error {
		if err := read(tx); err != nil || found { // another caller was first
			return err
		}
		have = storedStart(want)
		b, err := grow(tx, streamPath(st)...)
		if err != nil {
			return err
		}
		return putStart(b, want)
	})
	if err != nil {
		return state.Start{}, s.explain("store the start of "+st.ARN, err)
	}
	return state.Start(have), nil
}

// Streams implements state.Store.
func (s *Store) Streams(ctx context.Context, app string) ([]state.Stream, error) {
	if err := errors.Join(ctx.Err(), staterules.Application(app)); err != nil {
		return nil, err
	}
	var all []state.Stream
	err := s.db.View(in(appPath(app, streamsBucket), func(b *bbolt.Bucket) error {
		return b.ForEachBucket(func(arn []byte) error {
			all = append(all, state.Stream{Application: app, ARN: string(arn)})
			return nil
		})
	}))
	return all, s.explain("list the streams of "+app, err)
}

// Shards implements state.Store; they are ordered by id.
func (s *Store) Shards(ctx context.Context, st state.Stream) ([]state.Shard, error) {
	if err := errors.Join(ctx.Err(), st.Validate()); err != nil {
		return nil, err
	}
	var shards []state.Shard
	err := s.db.View(in(streamPath(st, shardsBucket), func(b *bbolt.Bucket) error {
		return b.ForEach(func(id, _ []byte) error {
			sh, err := getShard(b, string(id))
			shards = append(shards, sh)
			return err
		})
	}))
	if err != nil {
		return nil, s.explain("list the shards of "+st.ARN, err)
	}
	return shards, nil
}

// Finish implements state.Store.
func (s *Store) Finish(ctx context.Context, st state.Stream, shardIDs ...string) error {
	if err := errors.Join(ctx.Err(), st.Validate()); err != nil {
		return err
	}
	if err := staterules.Shards(shardIDs); err != nil {
		return err
	}
	if len(shardIDs) == 0 {
		return nil
	}
	return s.explain("store finished shards of "+st.ARN, s.db.Update(func(tx *bbolt.Tx) error {
		b, err := grow(tx, streamPath(st, shardsBucket)...)
		if err != nil {
			return err
		}
		for _, id := range shardIDs {
			if b.Get([]byte(id)) != nil {
				continue
			}
			if err := putShard(b, state.Shard{ID: id, Position: state.Position{Finished: true}}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Claim implements state.Store. Concurrent calls share a commit.
func (s *Store) Claim(ctx context.Context, st state.Stream, shardID, parent, owner string) (state.Shard, error) {
	if err := errors.Join(ctx.Err(), st.Validate()); err != nil {
		return state.Shard{}, err
	}
	if err := staterules.Claim(shardID, owner); err != nil {
		return state.Shard{}, err
	}
	if err := s.seen(owner); err != nil {
		return state.Shard{}, err
	}
	var claimed state.Shard
	var held error
	err := s.db.Batch(func(tx *bbolt.Tx) error {
		held = nil
		b, err := grow(tx, streamPath(st, shardsBucket)...)
		if err != nil {
			return err
		}
		sh, err := getShard(b, shardID)
		if err != nil {
			return err
		}
		if sh.Owner != "" && sh.Owner != owner && !s.owners.Fence(sh.Owner) {
			held = fmt.Errorf("%w: shard %s by %s", state.ErrHeld, shardID, sh.Owner)
			return nil
		}
		above := state.Shard{}
		if name := cmp.Or(parent, sh.Parent); name != "" {
			if above, err = getShard(b, name); err != nil {
				return err
			}
			above.ID = name
		}
		sh.ID = shardID
		claimed = sh.Claimed(above, owner)
		s.owners.Seen(owner)
		return putShard(b, claimed)
	})
	if err != nil {
		return state.Shard{}, s.explain("claim shard "+shardID, err)
	}
	if held != nil {
		return state.Shard{}, held
	}
	return claimed, nil
}

// Checkpoint implements state.Store: one transaction stores every valid position.
func (s *Store) Checkpoint(ctx context.Context, cs []state.Checkpoint) []error {
	if len(cs) == 0 {
		return nil
	}
	errs := make([]error, len(cs))
	failed := false
	all := func(err error) []error { return slices.Repeat([]error{err}, len(cs)) }
	if err := ctx.Err(); err != nil {
		return all(err)
	}
	err := s.db.Update(func(tx *bbolt.Tx) error {
		for i, c := range cs {
			b := find(tx, streamPath(c.Lease.Stream, shardsBucket)...)
			sh, err := getShard(b, c.Lease.ShardID)
			if err != nil {
				return err
			}
			if sh, err = sh.Advanced(c); err != nil {
				errs[i], failed = err, true
				continue
			}
			if err := putShard(b, sh); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return all(s.explain("store positions", err))
	case failed:
		return errs
	}
	return nil
}

// Release implements state.Store. Concurrent calls share a commit.
func (s *Store) Release(ctx context.Context, l state.Lease) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var lost error
	err := s.db.Batch(func(tx *bbolt.Tx) error {
		b := find(tx, streamPath(l.Stream, shardsBucket)...)
		sh, err := getShard(b, l.ShardID)
		if err != nil {
			return err
		}
		if lost = sh.Check(l); lost != nil {
			return nil
		}
		sh.Owner = ""
		return putShard(b, sh)
	})
	if err != nil {
		return s.explain("release shard "+l.ShardID, err)
	}
	return lost
}

// Forget implements state.Store, in one transaction.
func (s *Store) Forget(ctx context.Context, st state.Stream, shardIDs ...string) error {
	if err := errors.Join(ctx.Err(), st.Validate()); err != nil {
		return err
	}
	if len(shardIDs) == 0 {
		return nil
	}
	return s.explain("forget finished shards of "+st.ARN, s.db.Update(in(streamPath(st, shardsBucket), func(b *bbolt.Bucket) error {
		for _, id := range shardIDs {
			sh, err := getShard(b, id)
			if err == nil && sh.Forgettable(s.owners.Living) {
				err = b.Delete([]byte(id))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})))
}

// Heartbeat implements state.Store. It concerns this process only: a later process
// opens the file after its end.
func (s *Store) Heartbeat(ctx context.Context, owner string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.seen(owner)
}

func (s *Store) seen(owner string) error {
	if !s.owners.Seen(owner) {
		return fmt.Errorf("%w: %s", state.ErrFenced, owner)
	}
	return nil
}
