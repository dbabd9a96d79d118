package dynamostate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

// storedStream registers a stream. Position is empty while only its shards are
// known.
type storedStream struct {
	Position string    `dynamodbav:"position"`
	At       time.Time `dynamodbav:"at"`
	// Generation is another after each reset, and Resetting is true while the
	// shards are being deleted: a worker that began before claims nothing more.
	Generation string `dynamodbav:"generation"`
	Resetting  bool   `dynamodbav:"resetting"`
	Shards     bool   `dynamodbav:"shards"` // one was stored
}

func streamKey(st state.Stream) rows.Key {
	return rows.Key{Partition: streamsOf(st.Application), Sort: st.ARN}
}

// Start implements [state.Store].
func (s *Store) Start(ctx context.Context, st state.Stream, want state.Start) (state.Start, error) {
	if err := errors.Join(ctx.Err(), st.Validate()); err != nil {
		return state.Start{}, err
	}
	var start state.Start
	err := s.withRow(ctx, streamKey(st), func(row rows.Row) error {
		have, err := decode[storedStream](row)
		if err != nil {
			return err
		}
		if have.Resetting {
			return fmt.Errorf("a reset of %s was interrupted: repeat it", st.ARN)
		}
		s.began(st, have.Generation)
		if have.Position != "" {
			start = state.Start{Position: have.Position, At: have.At}
			return nil
		}
		if want == (state.Start{}) {
			return state.ErrNoStart
		}
		if err := want.Validate(); err != nil {
			return err
		}
		if err := s.note(ctx, st.Application); err != nil {
			return err
		}
		have.Position, have.At = want.Position, want.At
		_, err = s.rows.Write(ctx, row, encode(have))
		if err == nil {
			start = want
		}
		return err
	})
	return start, err
}

// Streams implements [state.Store].
func (s *Store) Streams(ctx context.Context, app string) ([]state.Stream, error) {
	if err := errors.Join(ctx.Err(), staterules.Application(app)); err != nil {
		return nil, err
	}
	var all []state.Stream
	for st, err := range list[storedStream](ctx, s.rows, streamsOf(app), "", 0) {
		if err != nil {
			return nil, err
		}
		if st.v.Position != "" || st.v.Shards || st.v.Resetting {
			all = append(all, state.Stream{Application: app, ARN: st.row.Sort})
		}
	}
	return all, nil
}

// began notes the generation of a stream whose start this Store has read. Since this
// Store read its shards, it may have been reset.
func (s *Store) began(st state.Stream, generation string) {
	s.relist(st)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generations[st] = generation
}

// registerStream notes a stream before one of its shards is stored. It returns an
// error if the stream was reset since this Store has read its start.
func (s *Store) registerStream(ctx context.Context, st state.Stream) error {
	if err := s.note(ctx, st.Application); err != nil || st.ARN == staterules.Jobs {
		return err
	}
	return s.withRow(ctx, streamKey(st), func(row rows.Row) error {
		have, err := decode[storedStream](row)
		if err != nil {
			return err
		}
		s.mu.Lock()
		began, known := s.generations[st]
		if !known {
			s.generations[st] = have.Generation
		}
		s.mu.Unlock()
		if have.Resetting || known && began != have.Generation {
			return fmt.Errorf("stream %s was reset: start this worker again", st.ARN)
		}
		if have.Shards {
			return nil
		}
		have.Shards = true
		_, err = s.rows.Write(ctx, row, encode(have))
		return err
	})
}

// note stores the name of an application before its first row. This Store asks once.
func (s *Store) note(ctx context.Context, app string) error {
	s.mu.Lock()
	noted := s.noted[app]
	s.mu.Unlock()
	if noted {
		return nil
	}
	row, err := s.rows.Get(ctx, rows.Key{Partition: applications, Sort: app})
	if err == nil && !row.Exists() {
		_, err = s.rows.Write(ctx, row, encode(struct{}{}))
		err = unlessChanged(err)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noted[app] = true
	return nil
}
