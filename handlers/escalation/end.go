package escalation

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/keyhash"
)

// errNobody is the alarm's reason of [Config.NobodyCalled].
var errNobody = errors.New("nobody was called: every step has failed or was skipped, and the escalation ends; its attempts say why")

// expire ends an escalation whose last step was not answered in time. If no step
// could be called, the reason differs and an alarm is raised.
func (c Config) expire(ctx context.Context, e Escalation) error {
	left, err := c.leftBehind(ctx, e.ID, e.Round, e.Started)
	if err != nil {
		return err
	}
	if left { // the record of the INSERT, which begins a round, is still to come
		if _, err := c.raise(ctx, e.ID, e.Item, e.Round, e.Started); err != nil && !dynamo.IsCondition(err) {
			return err
		}
		return sluice.Skip("expiry of a deleted escalation")
	}
	attempts, called, err := c.called(ctx, e)
	if err != nil {
		return err
	}
	if called || attempts == 0 {
		return c.fail(ctx, e, c.NoResponse)
	}
	// The alarm goes first: after a crash between the two, nobody would raise
	// it.
	a := Alarm{Escalation: e.ID, Round: e.Round, Number: attempts, Err: errNobody, Ended: true, DedupeKey: dedupeKey(e.ID, "alarm-end", e.Round)}
	if err := c.raiseAlarm(ctx, a); err != nil {
		return err
	}
	return c.fail(ctx, e, c.NobodyCalled)
}

// called reports whether a step of the round was called, and the number of
// attempts. An attempt without an outcome comes from another consumer, which
// called.
func (c Config) called(ctx context.Context, e Escalation) (attempts int64, called bool, err error) {
	for ; ; attempts++ {
		it, err := c.GetAttempt(ctx, e.ID, e.Round, attempts)
		if err != nil {
			return attempts, false, fmt.Errorf("reading attempt %s: %w", keyhash.Text(tryKey(e.ID, e.Round, attempts)), err)
		}
		if !it.Exists() {
			return attempts, false, nil
		}
		if v, _ := it.Lookup(c.Attempt.Outcome); !v.Is(Failed) && !v.Is(Skipped) {
			return attempts, true, nil
		}
	}
}

func (c Config) raiseAlarm(ctx context.Context, a Alarm) error {
	if err := c.Watch.Alarm(ctx, a); err != nil {
		return fmt.Errorf("raising the alarm for escalation %s: %w", keyhash.Text(a.Escalation), err)
	}
	once(c.counts.alarm)
	return nil
}
