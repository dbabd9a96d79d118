package boltstate

import (
	"bytes"
	"context"
	"errors"

	"go.etcd.io/bbolt"

	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

// Values are beside streams and letters in their application's bucket. Older
// programs ignore and keep them.

// PutValue implements state.Values. Concurrent calls share a commit.
func (s *Store) PutValue(ctx context.Context, app, name string, data []byte) error {
	if err := errors.Join(ctx.Err(), staterules.Value(app, name, data)); err != nil {
		return err
	}
	err := s.db.Batch(func(tx *bbolt.Tx) error {
		b, err := grow(tx, []byte(app), valuesBucket)
		if err != nil {
			return err
		}
		return b.Put([]byte(name), data)
	})
	if err != nil {
		return s.explain("store value "+name, err)
	}
	return nil
}

// GetValue implements state.Values.
func (s *Store) GetValue(ctx context.Context, app, name string) (data []byte, ok bool, err error) {
	if err := errors.Join(ctx.Err(), staterules.Value(app, name, nil)); err != nil {
		return nil, false, err
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		if b := find(tx, []byte(app), valuesBucket); b != nil {
			v := b.Get([]byte(name))
			data, ok = bytes.Clone(v), v != nil
		}
		return nil
	})
	if err != nil {
		return nil, false, s.explain("read value "+name, err)
	}
	return data, ok, nil
}

// ListValues implements state.Values.
func (s *Store) ListValues(ctx context.Context, app, prefix string) ([]state.Value, error) {
	if err := errors.Join(ctx.Err(), staterules.Value(app, "any", nil)); err != nil {
		return nil, err
	}
	var values []state.Value
	err := s.db.View(func(tx *bbolt.Tx) error {
		b := find(tx, []byte(app), valuesBucket)
		if b == nil {
			return nil
		}
		c := b.Cursor()
		for name, data := c.Seek([]byte(prefix)); bytes.HasPrefix(name, []byte(prefix)) && name != nil; name, data = c.Next() {
			values = append(values, state.Value{Name: string(name), Data: bytes.Clone(data)})
		}
		return nil
	})
	if err != nil {
		return nil, s.explain("list values", err)
	}
	return values, nil
}

// DeleteValue implements state.Values.
func (s *Store) DeleteValue(ctx context.Context, app, name string) error {
	if err := errors.Join(ctx.Err(), staterules.Value(app, name, nil)); err != nil {
		return err
	}
	err := s.db.Batch(func(tx *bbolt.Tx) error {
		if b := find(tx, []byte(app), valuesBucket); b != nil {
			return b.Delete([]byte(name))
		}
		return nil
	})
	if err != nil {
		return s.explain("delete value "+name, err)
	}
	return nil
}
