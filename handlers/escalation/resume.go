package escalation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/keyhash"
)

// Resume handles the record of a changed escalation. An escalation that becomes
// active again, because its acknowledgement was withdrawn or it was re-opened,
// gets a new round. The record of a raised round, also by an application, begins
// the round at the first step. A shortened snooze continues the chain. All other
// changes are skipped. The stream needs both images. It is a [sluice.Handler].
func (s *Escalator) Resume(ctx context.Context, rec *sluice.Record) error {
	was, is, err := s.images(rec)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("record of a change: %w", err))
	}
	switch {
	case !is.active:
		return sluice.Skip("escalation not active")
	case is.round < was.round: // the whole item was put, without its round
		return s.newRound(ctx, rec, was.round)
	case is.round != was.round:
		e, err := s.inRound(ctx, rec, is.round)
		return s.begin(ctx, rec, e, err)
	case !was.active:
		return s.newRound(ctx, rec, is.round)
	case is.snoozedUntil.Before(was.snoozedUntil):
		return s.wake(ctx, rec, is.round)
	}
	return sluice.Skip("nothing to resume")
}

// image is the relevant state of an escalation before or after a change.
type image struct {
	active       bool
	round        int64
	snoozedUntil time.Time // zero also if unreadable
}

func (s *Escalator) images(rec *sluice.Record) (was, is image, err error) {
	if !rec.Old.Exists() || !rec.New.Exists() {
		return was, is, errors.New("want the old and the new image: set StreamViewType to NEW_AND_OLD_IMAGES")
	}
	a := s.c.Escalation
	read := func(it sluice.Item) (i image, err error) {
		status, _ := it.Lookup(a.Status)
		i.active = status.Is(a.Active)
		if a.SnoozedUntil != "" {
			i.snoozedUntil, _ = moment(it, a.SnoozedUntil)
		}
		i.round, err = count(it, a.Round)
		return i, err
	}
	if is, err = read(rec.New); err != nil {
		return was, is, err
	}
	was, err = read(rec.Old)
	return was, is, err
}

// newRound writes the number of the new round; that record begins it. Until then
// messages and records of the old round count. Afterwards they do not, so nobody
// is called twice.
func (s *Escalator) newRound(ctx context.Context, rec *sluice.Record, last int64) error {
	id, err := text(rec.Keys, s.c.Escalation.ID)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("keys: %w", err))
	}
	_, err = s.c.raise(ctx, id, rec.New, last, rec.Created)
	if dynamo.IsCondition(err) {
		return sluice.Skip("escalation has changed since")
	}
	return err
}

// wake sends the next message again, because the earlier one waits for the end of
// the longer snooze.
func (s *Escalator) wake(ctx context.Context, rec *sluice.Record, round int64) error {
	e, err := s.inRound(ctx, rec, round)
	if err != nil {
		return err
	}
	last, err := s.c.lastMade(ctx, e, 0)
	if err != nil {
		return err
	}
	return s.advance(ctx, e, last)
}

func (s *Escalator) inRound(ctx context.Context, rec *sluice.Record, round int64) (Escalation, error) {
	e, err := s.recorded(ctx, rec)
	if err == nil && e.Round != round {
		err = sluice.Skip("another round has begun")
	}
	return e, err
}

// lastMade is the last finished attempt of the round, searched from a number on;
// nil if none.
func (c Config) lastMade(ctx context.Context, e Escalation, from int64) (last *attempt, err error) {
	for n := max(from-1, 0); ; n++ {
		key := tryKey(e.ID, e.Round, n)
		it, err := c.GetAttempt(ctx, e.ID, e.Round, n)
		if err != nil {
			return nil, fmt.Errorf("reading attempt %s: %w", keyhash.Text(key), err)
		}
		if _, made := it.Lookup(c.Attempt.At); !made {
			return last, nil
		}
		a, err := c.Attempt.read(it)
		if err != nil {
			return nil, sluice.Permanent(fmt.Errorf("attempt %s: %w", keyhash.Text(key), err))
		}
		last = &a
	}
}
