package boltstate

import (
	"bytes"
	"context"
	"errors"

	"go.etcd.io/bbolt"

	"github.com/sluicehq/sluice/state"
)

// PutLetter implements state.Letters. Letters put at the same time share a
// commit.
func (s *Store) PutLetter(ctx context.Context, app, id string, data []byte) error {
	if err := errors.Join(ctx.Err(), state.ValidateLetter(app, id)); err != nil {
		return err
	}
	err := s.db.Batch(func(tx *bbolt.Tx) error {
		b, err := grow(tx, []byte(app), lettersBucket)
		if err != nil {
			return err
		}
		return b.Put([]byte(id), data)
	})
	if err != nil {
		return s.explain("store dead letter "+id, err)
	}
	return nil
}

// GetLetter implements state.Letters.
func (s *Store) GetLetter(ctx context.Context, app, id string) (data []byte, ok bool, err error) {
	if err := errors.Join(ctx.Err(), state.ValidateLetter(app, id)); err != nil {
		return nil, false, err
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		if b := find(tx, []byte(app), lettersBucket); b != nil {
			v := b.Get([]byte(id))
			data, ok = bytes.Clone(v), v != nil
		}
		return nil
	})
	if err != nil {
		return nil, false, s.explain("read dead letter "+id, err)
	}
	return data, ok, nil
}

// ListLetters implements state.Letters.
func (s *Store) ListLetters(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	return s.listLetters(ctx, app, after, limit, bytes.Clone)
}

func (s *Store) listLetters(ctx context.Context, app, after string, limit int, copied func([]byte) []byte) ([]state.Letter, error) {
	if err := errors.Join(ctx.Err(), state.ValidateLetter(app, "any")); err != nil {
		return nil, err
	}
	var letters []state.Letter
	err := s.db.View(func(tx *bbolt.Tx) error {
		b := find(tx, []byte(app), lettersBucket)
		if b == nil {
			return nil
		}
		c := b.Cursor()
		id, data := c.Seek([]byte(after))
		if string(id) == after {
			id, data = c.Next()
		}
		for ; id != nil && len(letters) < limit; id, data = c.Next() {
			letters = append(letters, state.Letter{ID: string(id), Data: copied(data)})
		}
		return nil
	})
	if err != nil {
		return nil, s.explain("list dead letters", err)
	}
	return letters, nil
}

// DeleteLetter implements state.Letters.
func (s *Store) DeleteLetter(ctx context.Context, app, id string) error {
	if err := errors.Join(ctx.Err(), state.ValidateLetter(app, id)); err != nil {
		return err
	}
	err := s.db.Batch(func(tx *bbolt.Tx) error {
		if b := find(tx, []byte(app), lettersBucket); b != nil {
			return b.Delete([]byte(id))
		}
		return nil
	})
	if err != nil {
		return s.explain("delete dead letter "+id, err)
	}
	return nil
}

// ListLetterHeads is ListLetters with no more than the first bytes of each
// letter, so that many large ones can be counted.
func (s *Store) ListLetterHeads(ctx context.Context, app, after string, limit, most int) ([]state.Letter, error) {
	return s.listLetters(ctx, app, after, limit, func(data []byte) []byte { return bytes.Clone(data[:min(len(data), most)]) })
}
