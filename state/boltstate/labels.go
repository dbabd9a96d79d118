package boltstate

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"go.etcd.io/bbolt"

	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

// Labels are in a bucket beside that of their letters, under the same ids. A
// letter without a label has an empty one. A file of format 1 lacks some.

// allLabelled is the sequence of a label bucket with an entry for every letter.
const allLabelled = 1

// growLabels returns the bucket of labels and creates it if missing.
func growLabels(tx *bbolt.Tx, app string) (*bbolt.Bucket, error) {
	if b := find(tx, []byte(app), labelsBucket); b != nil {
		return b, nil
	}
	b, err := grow(tx, []byte(app), labelsBucket)
	if err == nil {
		err = tx.Bucket(metaBucket).Put(formatKey, []byte(strconv.Itoa(format)))
	}
	if err == nil && find(tx, []byte(app), lettersBucket) == nil {
		err = b.SetSequence(allLabelled)
	}
	return b, err
}

// ListLabels implements state.Labels.
func (s *Store) ListLabels(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	return s.list(ctx, labelsBucket, app, after, limit, bytes.Clone)
}

// LabelLetters implements state.Labels. In a file of format 1 it reads all letters
// once; afterwards only labels.
func (s *Store) LabelLetters(ctx context.Context, app string, label func(id string, data []byte) []byte) error {
	const commit = 5000 // labels
	var labels []state.Letter
	for after := ""; ; {
		bare, last, all, err := s.unlabelled(ctx, app, after)
		if err != nil {
			return err
		}
		for _, l := range bare {
			if text := label(l.ID, l.Data); len(text) > 0 || !all {
				labels = append(labels, state.Letter{ID: l.ID, Data: text})
			}
		}
		if len(labels) >= commit || last == "" {
			if err := s.putLabels(ctx, app, labels, last == "" && !all); err != nil {
				return err
			}
			labels = nil
		}
		if last == "" {
			return nil
		}
		after = last
	}
}

// unlabelled returns the unlabelled letters among the first hundred after after,
// and the last id that it looked at, empty at the end. all: every letter has a
// label entry.
func (s *Store) unlabelled(ctx context.Context, app, after string) (bare []state.Letter, last string, all bool, err error) {
	if err := errors.Join(ctx.Err(), staterules.Letter(app, "any")); err != nil {
		return nil, "", false, err
	}
	const page = 100
	err = s.db.View(func(tx *bbolt.Tx) error {
		letters, labels := find(tx, []byte(app), lettersBucket), find(tx, []byte(app), labelsBucket)
		all = letters == nil || labels != nil && labels.Sequence() == allLabelled
		if letters == nil {
			return nil
		}
		ids := letters
		if all {
			ids = labels
		}
		if err := s.letters.look(ids, after, page); err != nil {
			return err
		}
		c, id, value := behind(ids, after)
		for n := 0; id != nil && n < page; n++ {
			last = string(id)
			label := value
			if !all {
				label = nil
			}
			if !all && labels != nil {
				if err := s.letters.look(labels, last, 0); err != nil {
					return err
				}
				label = labels.Get(id)
			}
			if len(label) == 0 {
				if err := s.letters.look(letters, last, 0); err != nil {
					return err
				}
				bare = append(bare, state.Letter{ID: last, Data: bytes.Clone(letters.Get(id))})
			}
			id, value = c.Next()
		}
		return nil
	})
	if err != nil {
		return nil, "", false, s.explain("list dead letters", err)
	}
	return bare, last, all, nil
}

// putLabels stores labels for letters that still exist and have none. whole: every
// letter now has a label entry.
func (s *Store) putLabels(ctx context.Context, app string, labels []state.Letter, whole bool) error {
	if len(labels) == 0 && !whole {
		return nil
	}
	return s.changeLetters(ctx, "label dead letters", func(tx *bbolt.Tx) error {
		b, err := growLabels(tx, app)
		if err != nil {
			return err
		}
		letters := find(tx, []byte(app), lettersBucket)
		for _, l := range labels {
			if letters == nil || letters.Get([]byte(l.ID)) == nil || len(b.Get([]byte(l.ID))) > 0 {
				continue
			}
			if err := b.Put([]byte(l.ID), l.Data); err != nil {
				return err
			}
		}
		if whole {
			return b.SetSequence(allLabelled)
		}
		return nil
	})
}
