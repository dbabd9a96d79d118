package statetest_test

import (
	"context"
	"maps"
	"slices"

	"github.com/sluicehq/sluice/state"
)

// labelled is where the labels of an application are.
func (s *store) labelled(app string) map[string][]byte {
	if s.is("labels are not apart") {
		app = "all"
	}
	if s.labels[app] == nil {
		s.labels[app] = make(map[string][]byte)
	}
	return s.labels[app]
}

func (s *store) PutLabelled(ctx context.Context, app, id string, data, label []byte) error {
	if err := s.PutLetter(ctx, app, id, data); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.labelled(app)[id] = slices.Clone(label)
	return nil
}

func (s *store) ListLabels(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]bool)
	for id := range s.letters[app] {
		all[id] = true
	}
	for id := range s.labelled(app) {
		all[id] = true
	}
	var labels []state.Letter
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if id > after && len(labels) < limit {
			labels = append(labels, state.Letter{ID: id, Data: slices.Clone(s.labelled(app)[id])})
		}
	}
	return labels, ctx.Err()
}

func (s *store) LabelLetters(ctx context.Context, app string, label func(id string, data []byte) []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.letters[app])) {
		if len(s.labelled(app)[id]) == 0 || s.is("labelled letters are labelled again") {
			s.labelled(app)[id] = label(id, slices.Clone(s.letters[app][id]))
		}
	}
	return ctx.Err()
}
