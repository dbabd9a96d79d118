package boltstate

import (
	"bytes"
	"context"
	"errors"

	"go.etcd.io/bbolt"

	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

// PutLetter implements state.Letters. Concurrent calls share a commit.
func (s *Store) PutLetter(ctx context.Context, app, id string, data []byte) error {
	return s.PutLabelled(ctx, app, id, data, nil)
}

// PutLabelled implements state.Labels.
func (s *Store) PutLabelled(ctx context.Context, app, id string, data, label []byte) error {
	if err := errors.Join(ctx.Err(), staterules.Letter(app, id)); err != nil {
		return err
	}
	return s.changeLetters(ctx, "store dead letter "+id, func(tx *bbolt.Tx) error {
		labels, err := growLabels(tx, app)
		if err != nil {
			return err
		}
		letters, err := grow(tx, []byte(app), lettersBucket)
		if err != nil {
			return err
		}
		return errors.Join(letters.Put([]byte(id), data), labels.Put([]byte(id), label))
	})
}

// changeLetters changes letters once the check of the file has passed.
func (s *Store) changeLetters(ctx context.Context, doing string, change func(*bbolt.Tx) error) error {
	err := s.letters.wait(ctx)
	if err == nil {
		err = s.db.Batch(change)
	}
	return s.explain(doing, err)
}

// GetLetter implements state.Letters.
func (s *Store) GetLetter(ctx context.Context, app, id string) (data []byte, ok bool, err error) {
	if err := errors.Join(ctx.Err(), staterules.Letter(app, id)); err != nil {
		return nil, false, err
	}
	err = s.db.View(in(appPath(app, lettersBucket), func(b *bbolt.Bucket) error {
		if err := s.letters.look(b, id, 0); err != nil {
			return err
		}
		v := b.Get([]byte(id))
		data, ok = bytes.Clone(v), v != nil
		return nil
	}))
	return data, ok, s.explain("read dead letter "+id, err)
}

// ListLetters implements state.Letters.
func (s *Store) ListLetters(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	return s.list(ctx, lettersBucket, app, after, limit, bytes.Clone)
}

// ListLetterHeads is ListLetters with at most the first most bytes of each letter,
// to count many large letters.
func (s *Store) ListLetterHeads(ctx context.Context, app, after string, limit, most int) ([]state.Letter, error) {
	return s.list(ctx, lettersBucket, app, after, limit, func(data []byte) []byte { return bytes.Clone(data[:min(len(data), most)]) })
}

// list lists the letters or labels of an application.
func (s *Store) list(ctx context.Context, bucket []byte, app, after string, limit int, copied func([]byte) []byte) ([]state.Letter, error) {
	if err := errors.Join(ctx.Err(), staterules.Letter(app, "any")); err != nil {
		return nil, err
	}
	var letters []state.Letter
	err := s.db.View(in(appPath(app, bucket), func(b *bbolt.Bucket) error {
		if err := s.letters.look(b, after, limit); err != nil {
			return err
		}
		c, id, data := behind(b, after)
		for ; id != nil && len(letters) < limit; id, data = c.Next() {
			letters = append(letters, state.Letter{ID: string(id), Data: copied(data)})
		}
		return nil
	}))
	return letters, s.explain("list dead letters", err)
}

// behind returns a cursor at the first key of b that is greater than after.
func behind(b *bbolt.Bucket, after string) (c *bbolt.Cursor, key, value []byte) {
	c = b.Cursor()
	key, value = c.Seek([]byte(after))
	if string(key) == after {
		key, value = c.Next()
	}
	return c, key, value
}

// DeleteLetter implements state.Letters.
func (s *Store) DeleteLetter(ctx context.Context, app, id string) error {
	if err := errors.Join(ctx.Err(), staterules.Letter(app, id)); err != nil {
		return err
	}
	return s.changeLetters(ctx, "delete dead letter "+id, func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{lettersBucket, labelsBucket} {
			if b := find(tx, []byte(app), name); b != nil {
				if err := b.Delete([]byte(id)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
