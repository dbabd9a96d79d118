package escalation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/internal/outcomes"
)

// Escalator has the handlers of one kind of escalation. It is safe for concurrent
// use.
type Escalator struct {
	c     Config
	hop   sluice.Middleware // of the watchdog
	moved moved
}

// New returns an Escalator, or an error that names every missing or invalid field.
func New(c Config) (*Escalator, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("escalation: %w", err)
	}
	return &Escalator{c: c, hop: message.Hop(c.Watch.Send, message.Options{MaxDelay: c.MaxDelay, Now: c.Now})}, nil
}

// Start handles the record of a new escalation: it sends the watchdog's message
// and that of the first step, or fails an escalation without steps. An INSERT
// whose id has attempts of a deleted escalation begins a new round. It is a
// [sluice.Handler].
func (s *Escalator) Start(ctx context.Context, rec *sluice.Record) error {
	e, err := s.recorded(ctx, rec)
	raised, failed := s.reused(ctx, rec, e)
	if failed != nil {
		return failed
	}
	if raised.Exists() {
		e, err = s.c.judge(e.ID, raised)
	}
	return s.begin(ctx, rec, e, err)
}

// begin begins a round. It sends the watchdog's message first, even if err says
// that the escalation cannot be read, so that the watchdog sees every later
// failure. Retries of the rest do not send it again.
func (s *Escalator) begin(ctx context.Context, rec *sluice.Record, e Escalation, err error) error {
	if err != nil && !sluice.IsPermanent(err) || e.ID == "" {
		return err
	}
	v := vigil{id: e.ID, round: e.Round, notBefore: rec.Created.Add(s.c.Watch.soon())}
	if err := s.move(ctx, v); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	err = s.advance(ctx, e, nil)
	if err == nil || sluice.IsPermanent(err) {
		return err
	}
	rest := func(ctx context.Context, rec *sluice.Record) error {
		e, err := s.inRound(ctx, rec, v.round)
		if err != nil {
			return err
		}
		return s.advance(ctx, e, nil)
	}
	r := &sluice.Remaining{Rest: rest, Err: err}
	if retry, ok := errors.AsType[*outcomes.Retry](err); ok {
		r.After = retry.After
	}
	return r
}

// Next handles the record of a finished attempt: it sends the message of the next
// step, or the expiry. It is a [sluice.Handler].
func (s *Escalator) Next(ctx context.Context, rec *sluice.Record) error {
	if _, made := rec.New.Lookup(s.c.Attempt.At); !made {
		return sluice.Skip("attempt not made")
	}
	a, err := s.c.Attempt.read(rec.New)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("attempt: %w", err))
	}
	e, err := s.c.active(ctx, a.escalation)
	if err != nil {
		return err
	}
	if a.round != e.Round {
		return sluice.Skip("attempt of another round")
	}
	return s.advance(ctx, e, &a)
}

// recorded reads the escalation of a record. An unreadable one has only its ID.
func (s *Escalator) recorded(ctx context.Context, rec *sluice.Record) (Escalation, error) {
	id, err := text(rec.Keys, s.c.Escalation.ID)
	if err != nil {
		return Escalation{}, sluice.Permanent(fmt.Errorf("keys: %w", err))
	}
	return s.c.active(ctx, id)
}

// active reads an escalation. It returns a Skip when the escalation is over or missing.
func (c Config) active(ctx context.Context, id string) (Escalation, error) {
	it, err := c.Get(ctx, id)
	if err != nil {
		return Escalation{}, fmt.Errorf("reading escalation %s: %w", keyhash.Text(id), err)
	}
	return c.judge(id, it)
}

func (c Config) judge(id string, it sluice.Item) (Escalation, error) {
	if !it.Exists() {
		return Escalation{}, sluice.Skip("escalation not found")
	}
	e, active, err := c.Escalation.read(id, it)
	switch {
	case err != nil:
		return e, sluice.Permanent(fmt.Errorf("escalation %s: %w", keyhash.Text(id), err))
	case !active:
		return Escalation{}, sluice.Skip("escalation not active")
	}
	return e, nil
}

// advance sends the message that follows last; nil is the start of the round.
func (s *Escalator) advance(ctx context.Context, e Escalation, last *attempt) error {
	next, problems, err := s.next(ctx, e, last)
	for _, problem := range problems {
		s.c.Problem(ctx, e, problem)
		once(s.c.counts.problems)
	}
	if err != nil || next == nil {
		return err
	}
	return s.send(ctx, *next)
}

// next returns what follows last; nil if the escalation cannot continue and was
// failed. problems are skipped steps and attributes.
func (s *Escalator) next(ctx context.Context, e Escalation, last *attempt) (next *upcoming, problems []error, err error) {
	partition, err := s.c.Query(ctx, e.Ladder)
	if err != nil {
		return nil, nil, fmt.Errorf("reading ladder %s of escalation %s: %w", keyhash.Text(e.Ladder), keyhash.Text(e.ID), err)
	}
	if reason := s.c.Admit(e, partition); reason != "" {
		return nil, nil, s.c.fail(ctx, e, reason)
	}
	steps, bad := s.c.Step.ladder(partition)
	if last == nil && len(steps) == 0 {
		return nil, e.problems, s.noSteps(ctx, e, bad)
	}
	for _, err := range bad {
		problems = append(problems, fmt.Errorf("ladder %s: %w", keyhash.Text(e.Ladder), err))
	}
	u := s.c.upcoming(e, steps, last)
	return &u, append(problems, e.problems...), nil
}

// endedError is the reason why an escalation was failed.
type endedError struct{ error }

// noSteps ends an escalation without a usable step. It reports bad steps as an
// error, for their author.
func (s *Escalator) noSteps(ctx context.Context, e Escalation, bad []error) error {
	if len(bad) == 0 {
		return s.c.fail(ctx, e, s.c.NoSteps)
	}
	if err := s.c.fail(ctx, e, s.c.BadSteps); err != nil {
		return err
	}
	err := fmt.Errorf("ladder %s of escalation %s has no good step, and the escalation was failed: %w", keyhash.Text(e.Ladder), keyhash.Text(e.ID), errors.Join(bad...))
	return sluice.Permanent(&endedError{err})
}

func (c Config) fail(ctx context.Context, e Escalation, reason string) error {
	if err := c.Fail(ctx, e, reason); err != nil {
		return fmt.Errorf("failing escalation %s (%s): %w", keyhash.Text(e.ID), reason, err)
	}
	return nil
}

func (s *Escalator) send(ctx context.Context, u upcoming) error {
	body, key := u.message(s.c)
	return send(ctx, s.c.Send, body, key, u.notBefore, message.Delay(u.notBefore, s.c.Now(), s.c.MaxDelay))
}

// send sends a message that is due at notBefore.
func send(ctx context.Context, by func(context.Context, sluice.Message) error, body []byte, key string, notBefore time.Time, delay time.Duration) error {
	err := by(ctx, sluice.Message{Body: string(body), Delay: delay, Attributes: map[string]sluice.MessageAttribute{
		"dedupeKey": {Value: key},
		"notBefore": {Value: formatTime(notBefore)},
	}})
	if err != nil {
		return fmt.Errorf("sending %s: %w", keyhash.Text(key), err)
	}
	return nil
}
