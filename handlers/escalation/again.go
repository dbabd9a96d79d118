package escalation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/item"
)

// An application may delete an escalation and put another with the same id. The
// attempts of the deleted one remain. Their times show to which escalation they
// belong: no attempt is older than the INSERT record or the start of its
// escalation.

// clockSlack is the allowed difference between the clocks of a consumer, the
// application and DynamoDB, including fractions of a second that times omit.
const clockSlack = 2 * time.Second

// leftBehind reports whether the first attempt of a round was made before t.
func (c Config) leftBehind(ctx context.Context, id string, round int64, t time.Time) (bool, error) {
	it, err := c.GetAttempt(ctx, id, round, 0)
	if err != nil {
		return false, fmt.Errorf("reading attempt %s: %w", keyhash.Text(tryKey(id, round, 0)), err)
	}
	at, err := moment(it, c.Attempt.At)
	return err == nil && at.Before(t.Add(-clockSlack)), nil
}

// reused begins a round for an INSERT if the current round has attempts of a
// deleted escalation. It returns the changed escalation, or the absent Item. If
// the round is already later than the INSERT's, it does nothing: the same INSERT
// begins no second round.
func (s *Escalator) reused(ctx context.Context, rec *sluice.Record, e Escalation) (raised sluice.Item, err error) {
	a := s.c.Escalation
	status, _ := e.Item.Lookup(a.Status)
	if rec.EventName != sluice.Insert || !status.Is(a.Active) {
		return raised, nil
	}
	round, err := count(e.Item, a.Round)
	inserted, bad := count(rec.New, a.Round)
	if errors.Join(err, bad) != nil || round != inserted {
		return raised, nil
	}
	if left, err := s.c.leftBehind(ctx, e.ID, round, rec.Created); err != nil || !left {
		return raised, err
	}
	raised, err = s.c.raise(ctx, e.ID, e.Item, round, rec.Created)
	if dynamo.IsCondition(err) { // the next try reads the current state
		err = fmt.Errorf("escalation %s has changed just now", keyhash.Text(e.ID))
	}
	return raised, err
}

// raise writes the number and start of a new round into an escalation that is
// still active and in the round that was read. It returns the changed escalation.
// The number is the first after last without attempts: an application that puts
// whole items may have lost the round.
func (c Config) raise(ctx context.Context, id string, read sluice.Item, last int64, began time.Time) (sluice.Item, error) {
	next, err := c.unused(ctx, id, last+1)
	if err != nil {
		return sluice.Item{}, err
	}
	a := c.Escalation
	err = c.Write(ctx, a.StillIn(read, dynamo.Update(c.Table, c.Key(id), "SET #round = :next, #began = :began")).
		Name("#began", a.RoundStarted).Value(":next", next).Value(":began", formatTime(began)))
	if err != nil {
		return sluice.Item{}, fmt.Errorf("beginning a new round of escalation %s: %w", keyhash.Text(id), err)
	}
	return read.With(item.Number(a.Round, strconv.FormatInt(next, 10)), item.String(a.RoundStarted, formatTime(began))), nil
}

// unused returns the first round without attempts, starting at a number.
func (c Config) unused(ctx context.Context, id string, round int64) (int64, error) {
	for ; ; round++ {
		key := tryKey(id, round, 0)
		it, err := c.GetAttempt(ctx, id, round, 0)
		if err != nil {
			return 0, fmt.Errorf("reading attempt %s: %w", keyhash.Text(key), err)
		}
		if !it.Exists() {
			return round, nil
		}
		if of, err := count(it, c.Attempt.Round); err != nil || of != round {
			return 0, sluice.Permanent(fmt.Errorf("attempt %s is not of its round: want the round in the key of an attempt", keyhash.Text(key)))
		}
	}
}
