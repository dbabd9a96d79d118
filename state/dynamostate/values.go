package dynamostate

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

type storedValue struct {
	Data []byte `dynamodbav:"data"`
}

func valueKey(app, name string) rows.Key { return rows.Key{Partition: valuesOf(app), Sort: name} }

// PutValue implements [state.Values].
func (s *Store) PutValue(ctx context.Context, app, name string, data []byte) error {
	if err := errors.Join(ctx.Err(), staterules.Value(app, name, data)); err != nil {
		return err
	}
	if err := s.note(ctx, app); err != nil {
		return err
	}
	return s.replace(ctx, valueKey(app, name), encode(storedValue{data}))
}

// SwapValue stores a value if the stored one is still seen; nil: if there is none. It
// reports whether it did. After an error it may have.
func (s *Store) SwapValue(ctx context.Context, app, name string, seen, data []byte) (bool, error) {
	if err := errors.Join(ctx.Err(), staterules.Value(app, name, data)); err != nil {
		return false, err
	}
	if err := s.note(ctx, app); err != nil {
		return false, err
	}
	row, v, err := fetch[storedValue](ctx, s.rows, valueKey(app, name))
	if err != nil || row.Exists() != (seen != nil) || !bytes.Equal(v.Data, seen) {
		return false, err
	}
	_, err = s.rows.Write(ctx, row, encode(storedValue{data}))
	return err == nil, unlessChanged(err)
}

// GetValue implements [state.Values].
func (s *Store) GetValue(ctx context.Context, app, name string) ([]byte, bool, error) {
	if err := errors.Join(ctx.Err(), staterules.Value(app, name, nil)); err != nil {
		return nil, false, err
	}
	row, v, err := fetch[storedValue](ctx, s.rows, valueKey(app, name))
	return v.Data, row.Exists() && err == nil, err
}

// ListValues implements [state.Values].
func (s *Store) ListValues(ctx context.Context, app, prefix string) ([]state.Value, error) {
	if err := errors.Join(ctx.Err(), staterules.Value(app, "any", nil)); err != nil {
		return nil, err
	}
	var all []state.Value
	if prefix != "" {
		data, ok, err := s.GetValue(ctx, app, prefix)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, state.Value{Name: prefix, Data: data})
		}
	}
	for row, err := range s.rows.List(ctx, valuesOf(app), prefix, 0) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(row.Sort, prefix) {
			break
		}
		v, err := decode[storedValue](row)
		if err != nil {
			return nil, err
		}
		all = append(all, state.Value{Name: row.Sort, Data: v.Data})
	}
	return all, nil
}

// DeleteValue implements [state.Values].
func (s *Store) DeleteValue(ctx context.Context, app, name string) error {
	if err := errors.Join(ctx.Err(), staterules.Value(app, name, nil)); err != nil {
		return err
	}
	return s.remove(ctx, valueKey(app, name))
}
