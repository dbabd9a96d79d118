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
	return s.explain("store value "+name, s.db.Batch(func(tx *bbolt.Tx) error {
		b, err := grow(tx, []byte(app), valuesBucket)
		if err != nil {
			return err
		}
		return b.Put([]byte(name), data)
	}))
}

// GetValue implements state.Values.
func (s *Store) GetValue(ctx context.Context, app, name string) (data []byte, ok bool, err error) {
	if err := errors.Join(ctx.Err(), staterules.Value(app, name, nil)); err != nil {
		return nil, false, err
	}
	err = s.db.View(in(appPath(app, valuesBucket), func(b *bbolt.Bucket) error {
		v := b.Get([]byte(name))
		data, ok = bytes.Clone(v), v != nil
		return nil
	}))
	return data, ok, s.explain("read value "+name, err)
}

// ListValues implements state.Values.
func (s *Store) ListValues(ctx context.Context, app, prefix string) ([]state.Value, error) {
	if err := errors.Join(ctx.Err(), staterules.Value(app, "any", nil)); err != nil {
		return nil, err
	}
	var values []state.Value
	err := s.db.View(in(appPath(app, valuesBucket), func(b *bbolt.Bucket) error {
		c := b.Cursor()
		for name, data := c.Seek([]byte(prefix)); bytes.HasPrefix(name, []byte(prefix)) && name != nil; name, data = c.Next() {
			values = append(values, state.Value{Name: string(name), Data: bytes.Clone(data)})
		}
		return nil
	}))
	return values, s.explain("list values", err)
}

// DeleteValue implements state.Values.
func (s *Store) DeleteValue(ctx context.Context, app, name string) error {
	if err := errors.Join(ctx.Err(), staterules.Value(app, name, nil)); err != nil {
		return err
	}
	return s.explain("delete value "+name, s.db.Batch(in(appPath(app, valuesBucket), func(b *bbolt.Bucket) error {
		return b.Delete([]byte(name))
	})))
}
