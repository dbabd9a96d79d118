package escalation

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/dynamo"
	"github.com/sluicehq/sluice/message"
)

// ConsumerConfig describes how the messages of an escalation are consumed.
// Where no default is stated the field is required. The functions must be safe
// for concurrent use.
type ConsumerConfig struct {
	// Config is what the messages were made with; see [New].
	Config Config

	// Message names the members of StepBody's and ExpiryBody's objects.
	Message MessageMembers

	// NewAttempt makes the attempt of a step: its key, and all attributes that
	// are known before it was tried. It must depend on nothing but its
	// argument. Of a step that is gone the argument holds ID and Order alone.
	AttemptTable string
	AttemptKey   []string // names of the key attributes
	NewAttempt   func(Try) sluice.Item

	// Claim names what the consumer adds to an attempt.
	Claim ClaimAttributes

	// Write makes one write. It says with a [*dynamo.ConditionError], whose Items
	// it fills, why not.
	Write func(ctx context.Context, op dynamo.Op) error

	// Contact tries a step. Its DedupeKey is the same in every call for that
	// step: a provider that is given it as an idempotency key does not disturb
	// anybody twice. It must return soon after ctx has ended. nil is an attempt
	// that was made; so is a [sluice.Permanent] error, and a [sluice.Skip]
	// passes the step over. Any other is tried again, if it is a
	// [sluice.RetryAfter] not before that.
	Contact func(ctx context.Context, t Try) error

	// Called, if it is set, is told of each call of Contact; outcome is "" when
	// it is to be repeated.
	Called func(t Try, outcome string, err error)

	// Lease is how long a step belongs to who tries it (default 2 min). After
	// a crash in the middle it is tried again when the lease is over. It must
	// be longer than Timeout by more than clocks differ.
	Lease time.Duration
	// Timeout bounds one call of Contact, with the claim before it (default 30 s).
	Timeout time.Duration
	// GiveUpAfter is how long after it was due a step is tried again when
	// Contact fails for the moment, or panics (default 10 min). It then counts
	// as attempted, so that the next step has its turn; at once when a
	// [sluice.RetryAfter] asks for longer than that.
	GiveUpAfter time.Duration

	// NoResponse is the reason that Fail is given for an escalation that
	// expires (default "no_response").
	NoResponse string
}

// MessageMembers name the members, or dotted paths, of a message's body.
type MessageMembers struct {
	Escalation string // id of the escalation
	StepID     string
	Order      string // of the step
	Number     string // of the attempt
	NotBefore  string // default "notBefore"
}

// ClaimAttributes name what the consumer writes into an attempt, beside
// [AttemptAttributes.At]. All are strings and top-level.
type ClaimAttributes struct {
	Owner   string // of the lease (default "leaseOwner")
	Until   string // end of the lease, in RFC 3339 (default "leaseUntil")
	Outcome string // default "outcome"
}

// Outcomes of an attempt.
const (
	Contacted = "contacted" // Contact returned nil
	Failed    = "failed"    // it failed for good, or for too long
	Skipped   = "skipped"   // the step was gone or disabled when its turn came
)

// Consumer holds the two handlers of an escalation's messages:
//
//	r.Handle("manhunt.attempt#MESSAGE", c.Try)
//	r.Handle("manhunt.expire#MESSAGE", c.Expire)
//
// A message that is not due yet is sent once more by both. It is safe for
// concurrent use, also by many processes.
type Consumer struct {
	c   ConsumerConfig
	hop sluice.Middleware
}

// NewConsumer returns a Consumer, or an error that names every field that is
// missing or wrong.
func NewConsumer(c ConsumerConfig) (*Consumer, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("escalation: %w", err)
	}
	hop := message.Hop(c.Config.Send, message.HopOptions{
		NotBefore: c.Message.NotBefore, MaxDelay: c.Config.MaxDelay, Now: c.Config.Now,
	})
	return &Consumer{c, hop}, nil
}

func (c ConsumerConfig) withDefaults() ConsumerConfig {
	c.Config = c.Config.withDefaults()
	for _, s := range []struct {
		field *string
		value string
	}{
		{&c.Message.NotBefore, "notBefore"},
		{&c.Claim.Owner, "leaseOwner"},
		{&c.Claim.Until, "leaseUntil"},
		{&c.Claim.Outcome, "outcome"},
		{&c.NoResponse, "no_response"},
	} {
		if *s.field == "" {
			*s.field = s.value
		}
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Lease, 2 * time.Minute}, {&c.Timeout, 30 * time.Second}, {&c.GiveUpAfter, 10 * time.Minute}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return c
}

func (c ConsumerConfig) validate() error {
	var errs []error
	if err := c.Config.validate(); err != nil {
		errs = append(errs, err)
	}
	for _, f := range []struct {
		name string
		ok   bool
	}{
		{"Message.Escalation", c.Message.Escalation != ""},
		{"Message.StepID", c.Message.StepID != ""},
		{"Message.Order", c.Message.Order != ""},
		{"Message.Number", c.Message.Number != ""},
		{"AttemptTable", c.AttemptTable != ""},
		{"AttemptKey", len(c.AttemptKey) > 0},
		{"NewAttempt", c.NewAttempt != nil},
		{"Write", c.Write != nil},
		{"Contact", c.Contact != nil},
	} {
		if !f.ok {
			errs = append(errs, fmt.Errorf("%s is missing", f.name))
		}
	}
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("Timeout is %v, want more than 0", c.Timeout))
	}
	if c.GiveUpAfter < 0 {
		errs = append(errs, fmt.Errorf("GiveUpAfter is %v, want more than 0", c.GiveUpAfter))
	}
	if c.Lease <= c.Timeout {
		errs = append(errs, fmt.Errorf("Lease is %v, want more than Timeout, %v: a step must not be taken over while it is tried", c.Lease, c.Timeout))
	}
	return errors.Join(errs...)
}

// Try handles the message of a step: it claims the step by an attempt with a
// lease, contacts, and writes down that it was attempted. It is a
// [sluice.Handler].
func (s *Consumer) Try(ctx context.Context, rec *sluice.Record) error { return s.hop(s.try)(ctx, rec) }

// Expire handles the message of an escalation's end. It is a [sluice.Handler].
func (s *Consumer) Expire(ctx context.Context, rec *sluice.Record) error {
	return s.hop(s.expire)(ctx, rec)
}

func (s *Consumer) expire(ctx context.Context, rec *sluice.Record) error {
	id, err := text(rec.New, s.c.Message.Escalation)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("expiry: %w", err))
	}
	e, err := s.active(ctx, id)
	if err != nil {
		return err
	}
	if err := s.c.Config.Fail(ctx, e, s.c.NoResponse); err != nil {
		return fmt.Errorf("failing escalation %s (%s): %w", id, s.c.NoResponse, err)
	}
	return nil
}

func (s *Consumer) try(ctx context.Context, rec *sluice.Record) error {
	t, err := s.read(rec.New)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("message of a step: %w", err))
	}
	if t.Escalation, err = s.active(ctx, t.Escalation.ID); err != nil {
		return err
	}
	there, err := s.find(ctx, &t)
	if err != nil {
		return err
	}
	held, err := s.claim(ctx, t)
	if err != nil {
		return err
	}
	if _, err := s.active(ctx, t.Escalation.ID); err != nil { // acknowledged meanwhile
		s.abandon(ctx, t, held)
		return err
	}
	if !there {
		return s.finish(ctx, t, held, Skipped)
	}

	outcome, err := s.contact(ctx, t, held)
	if outcome == "" {
		s.release(ctx, t, held)
		return again(t, err)
	}
	return s.finish(ctx, t, held, outcome)
}

// contact returns what the call came to, or "" when it is to be repeated.
func (s *Consumer) contact(ctx context.Context, t Try, held lease) (outcome string, err error) {
	// Claiming is a part of Timeout: what the lease is longer is for clocks that
	// differ. After it the step belongs to whoever comes next.
	left := held.until.Add(s.c.Timeout - s.c.Lease).Sub(s.c.Config.Now())
	if left < s.c.Timeout/2 {
		return "", fmt.Errorf("claiming has left only %v of %v for the call", left, s.c.Timeout)
	}
	calling, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	err = s.call(calling, t)
	switch {
	case err == nil:
		outcome = Contacted
	case sluice.IsSkip(err):
		outcome = Skipped
	case sluice.IsPermanent(err):
		outcome = Failed
	case ending(ctx): // that says nothing about the step
	case s.tooLate(t, err):
		outcome = Failed
	}
	if s.c.Called != nil {
		s.c.Called(t, outcome, err)
	}
	return outcome, err
}

// ending reports whether ctx has ended because the process does, and not by the
// time limit of the message's route, which counts like Timeout.
func ending(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}

// call makes a panic of Contact, or the end of its goroutine, an error: whoever
// cannot be contacted because of it must not hold up the steps that follow.
func (s *Consumer) call(ctx context.Context, t Try) error {
	result := make(chan error, 1)
	go func() {
		var err error
		ended := false
		defer func() {
			if !ended {
				err = &sluice.PanicError{Value: recover(), Stack: debug.Stack()}
			}
			result <- err
		}()
		err = s.c.Contact(ctx, t)
		ended = true
	}()
	return <-result
}

// tooLate reports whether the step's time will be over when err lets it be tried
// again.
func (s *Consumer) tooLate(t Try, err error) bool {
	next := s.c.Config.Now()
	if retry, ok := errors.AsType[*sluice.RetryError](err); ok {
		next = next.Add(retry.After)
	}
	return !next.Before(t.NotBefore.Add(s.c.GiveUpAfter))
}

// again is the outcome of a message whose step is to be tried again. Of what
// the provider's error says about the record only the wait is passed on: the
// record is not the provider's.
func again(t Try, err error) error {
	if retry, ok := errors.AsType[*sluice.RetryError](err); ok {
		return sluice.RetryAfter(retry.After, fmt.Errorf("step %s: contacting: %w", t.DedupeKey, retry.Err))
	}
	if _, ok := errors.AsType[*sluice.Remaining](err); ok {
		err = errors.New(err.Error())
	}
	return fmt.Errorf("step %s: contacting: %w", t.DedupeKey, err)
}

// read reads a step's message. What is not in it is left empty.
func (s *Consumer) read(body sluice.Item) (t Try, err error) {
	m := s.c.Message
	if t.Escalation.ID, err = text(body, m.Escalation); err != nil {
		return t, err
	}
	if t.Step.ID, err = text(body, m.StepID); err != nil {
		return t, err
	}
	if t.Step.Order, err = integer(body, m.Order); err != nil {
		return t, err
	}
	if t.Number, err = integer(body, m.Number); err != nil {
		return t, err
	}
	if t.NotBefore, err = moment(body, m.NotBefore); err != nil {
		return t, err
	}
	t.DedupeKey = t.Escalation.ID + "#" + strconv.FormatInt(t.Number, 10)
	return t, nil
}

// active reads an escalation; one that is over, or not there, is a Skip.
func (s *Consumer) active(ctx context.Context, id string) (Escalation, error) {
	it, err := s.c.Config.Get(ctx, id)
	if err != nil {
		return Escalation{}, fmt.Errorf("reading escalation %s: %w", id, err)
	}
	if !it.Exists() {
		return Escalation{}, sluice.Skip("escalation not found")
	}
	e, active, err := s.c.Config.Escalation.read(id, it)
	switch {
	case err != nil:
		return Escalation{}, sluice.Permanent(fmt.Errorf("escalation %s: %w", id, err))
	case !active:
		return Escalation{}, sluice.Skip("escalation not active")
	}
	return e, nil
}

// find fills in the step as it is now; false when it is gone, disabled or bad, or
// when the escalation cannot go on, which the stream's handler will find, too.
// A step that was moved keeps the message's order, from which the chain goes on.
func (s *Consumer) find(ctx context.Context, t *Try) (there bool, err error) {
	e := t.Escalation
	partition, err := s.c.Config.Query(ctx, e.Ladder)
	if err != nil {
		return false, fmt.Errorf("reading ladder %s of escalation %s: %w", e.Ladder, e.ID, err)
	}
	if s.c.Config.Admit(e, partition) != "" {
		return false, nil
	}
	steps, _ := s.c.Config.Step.ladder(partition) // Start and Next tell of bad ones
	for _, step := range steps {
		if step.ID == t.Step.ID {
			step.Order = t.Step.Order
			t.Step = step
			return true, nil
		}
	}
	return false, nil
}
