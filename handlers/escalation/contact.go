package escalation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/internal/outcomes"
)

// called is the result of one call of Contact; outcome is "" if it will be
// repeated.
type called struct {
	contact, outcome string
	err              error
}

// contact calls the step, or its contacts without an outcome, concurrently. It
// returns the step's outcome, with the reason if that is not Contacted. The
// outcome is "" if a call will be repeated; held then has the other outcomes.
func (s *Consumer) contact(ctx context.Context, t Try, held *lease) (outcome string, err error) {
	// The claim counts for Timeout. The rest of the lease covers clock
	// differences. After the lease another process may take the step.
	left := held.until.Add(s.c.Timeout - s.c.Lease).Sub(s.c.Config.Now())
	if left < s.c.Timeout/2 {
		return "", fmt.Errorf("claiming has left only %v of %v for the call", left, s.c.Timeout)
	}
	calling, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	if len(t.Step.Contacts) == 0 {
		c := s.callOne(ctx, calling, t)
		return c.outcome, c.err
	}

	results := make(chan called, len(t.Step.Contacts))
	running := 0
	for _, contact := range t.Step.Contacts {
		if held.contacts[contact] != "" {
			continue
		}
		running++
		one := t
		one.Contact = contact
		one.DedupeKey += "/" + url.QueryEscape(contact)
		go func() { results <- s.callOne(ctx, calling, one) }()
	}
	var failed, judged []error
	for range running {
		c := <-results
		if c.outcome == "" {
			failed = append(failed, c.err)
			continue
		}
		judged = append(judged, c.err)
		held.contacts[c.contact] = c.outcome
	}
	if len(failed) > 0 {
		return "", soonest(failed)
	}
	if outcome = held.outcome(); outcome == Contacted {
		return outcome, nil
	}
	return outcome, errors.Join(judged...)
}

// outcome is the outcome of a step with several contacts: the best of theirs.
func (l *lease) outcome() string {
	for _, outcome := range []string{Contacted, Failed} {
		for _, o := range l.contacts {
			if o == outcome {
				return outcome
			}
		}
	}
	return Skipped
}

// soonest returns the error with the earliest retry.
func soonest(failed []error) error {
	wait := func(err error) time.Duration {
		if retry, ok := errors.AsType[*outcomes.Retry](err); ok {
			return retry.After
		}
		return 0
	}
	return slices.MinFunc(failed, func(a, b error) int { return cmp.Compare(wait(a), wait(b)) })
}

// callOne makes one call and classifies its result.
func (s *Consumer) callOne(ctx, calling context.Context, t Try) (c called) {
	c.contact, c.err = t.Contact, s.call(calling, t)
	switch {
	case c.err == nil:
		c.outcome = Contacted
	case sluice.IsSkip(c.err):
		c.outcome = Skipped
	case sluice.IsPermanent(c.err):
		c.outcome = Failed
	case ending(ctx): // it says nothing about the step
	case s.tooLate(t, c.err):
		c.outcome = Failed
	}
	s.c.Config.counts.calls.Add(1, s.c.Config.Kind, cmp.Or(c.outcome, "again"))
	if s.c.Called != nil {
		s.c.Called(t, c.outcome, c.err)
	}
	return c
}

// ending reports whether ctx ended because the process ends, and not by the time
// limit of the message's route, which counts like Timeout.
func ending(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}

// call turns a panic or Goexit of Contact into an error: one contact must not stop
// the following steps.
func (s *Consumer) call(ctx context.Context, t Try) error {
	return <-outcomes.Go(func() error { return s.c.Contact(ctx, t) })
}

// tooLate reports whether the step's time will be over at the retry that err asks
// for.
func (s *Consumer) tooLate(t Try, err error) bool {
	next := s.c.Config.Now()
	if retry, ok := errors.AsType[*outcomes.Retry](err); ok {
		next = next.Add(retry.After)
	}
	return !next.Before(t.Escalation.awake(t.NotBefore).Add(s.c.GiveUpAfter))
}

// again is the outcome of a message whose step is retried. Only the wait of the
// provider's error is passed on: its other outcomes do not concern the record.
func again(t Try, err error) error {
	if retry, ok := errors.AsType[*outcomes.Retry](err); ok {
		return sluice.RetryAfter(retry.After, fmt.Errorf("step %s: contacting: %w", keyhash.Text(t.DedupeKey), retry.Err))
	}
	if _, ok := errors.AsType[*sluice.Remaining](err); ok {
		err = errors.New(err.Error())
	}
	return fmt.Errorf("step %s: contacting: %w", keyhash.Text(t.DedupeKey), err)
}
