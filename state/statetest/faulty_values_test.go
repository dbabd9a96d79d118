package statetest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

// value waits its turn and returns the values of app, or why the call must not
// be made.
func (s *store) value(ctx context.Context, app, name string, data []byte) (map[string][]byte, error) {
	s.mu.Lock()
	err := ctx.Err()
	if s.is("cancelled calls are made") {
		err = nil
	}
	if invalid := staterules.Value(app, name, data); !s.is("values may be anything") {
		err = errors.Join(err, invalid)
	}
	if s.is("values are not apart") {
		app = "all"
	}
	rows := s.values
	if s.is("values are letters") {
		rows = s.letters
	}
	if rows[app] == nil {
		rows[app] = make(map[string][]byte)
	}
	return rows[app], err
}

func (s *store) PutValue(ctx context.Context, app, name string, data []byte) error {
	all, err := s.value(ctx, app, name, data)
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	if s.is("values are not stored one by one") {
		copied := maps.Clone(all)
		s.window()
		clear(all)
		maps.Copy(all, copied)
		s.writes++
	}
	if !s.is("values are shared") {
		data = append([]byte{}, data...)
	}
	if _, ok := all[name]; !ok || !s.is("a value is never replaced") {
		all[name] = data
	}
	return nil
}

func (s *store) GetValue(ctx context.Context, app, name string) ([]byte, bool, error) {
	all, err := s.value(ctx, app, name, nil)
	defer s.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	data, ok := all[name]
	if !s.is("values are shared") {
		data = slices.Clone(data)
	}
	return data, ok, nil
}

func (s *store) ListValues(ctx context.Context, app, prefix string) (found []state.Value, err error) {
	all, err := s.value(ctx, app, "any", nil)
	defer s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(name, prefix) || s.is("a prefix is where to begin") && name > prefix {
			found = append(found, state.Value{Name: name, Data: slices.Clone(all[name])})
		}
	}
	return found, nil
}

func (s *store) DeleteValue(ctx context.Context, app, name string) error {
	all, err := s.value(ctx, app, name, nil)
	defer s.mu.Unlock()
	if err == nil {
		delete(all, name)
	}
	return err
}
