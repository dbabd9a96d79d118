package escalation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/internal/keyhash"
)

// ConsumerConfig describes the consumer of an escalation's messages. A field
// without a stated default is required. The functions must be safe for concurrent
// use.
type ConsumerConfig struct {
	// Config is the Config that made the messages; see [New].
	Config Config

	// Message names the members of the bodies of StepBody and ExpiryBody.
	Message MessageMembers

	// NewAttempt makes the attempt of a step: its key, and all attributes known
	// before the try. It must depend only on its argument. For a missing step
	// the argument has only ID and Order.
	AttemptTable string
	AttemptKey   []string // names of the key attributes
	NewAttempt   func(Try) sluice.Item

	// Claim names the attributes that the consumer adds to an attempt.
	Claim ClaimAttributes

	// Contact tries a step, or one of its contacts, which are called
	// concurrently. Its DedupeKey is the same in every call for that contact:
	// use it as the provider's idempotency key, and nobody is called twice.
	// Contact must return soon after ctx ends. nil, or a [sluice.Permanent]
	// error, ends the attempt. A [sluice.Skip] skips the contact. Any other
	// error is retried, a [sluice.RetryAfter] not before its time.
	Contact func(ctx context.Context, t Try) error

	// Called, if set, is called after each call of Contact, concurrently.
	// outcome is "" if the call will be repeated.
	Called func(t Try, outcome string, err error)

	// Lease is how long one process has the right to try a step (default 2
	// min). After a crash another tries it when the lease is over. Lease must
	// exceed Timeout by more than the difference between clocks.
	Lease time.Duration
	// Timeout limits one call of Contact, with the claim before it (default 30
	// s).
	Timeout time.Duration
	// GiveUpAfter is how long after its due time a contact is retried while
	// Contact fails temporarily, or panics (default 10 min). Then it counts as
	// attempted, and the next step follows. A [sluice.RetryAfter] beyond that
	// gives up at once.
	GiveUpAfter time.Duration
}

// MessageMembers name the members, or dotted paths, of a message's body.
type MessageMembers struct {
	Escalation string // id of the escalation
	StepID     string
	Order      string // of the step
	Number     string // of the attempt
	Round      string // default "round"; if missing, round 0
	Repeat     string // default "repeat"; if missing, the first climb
	NotBefore  string // default "notBefore"
}

// ClaimAttributes name the attributes that the consumer writes into an attempt,
// besides [AttemptAttributes]. All are top-level, and strings unless stated.
type ClaimAttributes struct {
	Owner string // of the lease (default "leaseOwner")
	Until string // end of the lease, in RFC 3339 (default "leaseUntil")

	// Contacts is a map of the outcomes of a step's contacts by name (default
	// "contacts").
	Contacts string

	// Error is the reason why a step failed or was skipped: the first 1,024
	// bytes of the error of Contact (default: not kept).
	Error string
}

// Outcomes of an attempt.
const (
	Contacted = "contacted" // Contact returned nil
	Failed    = "failed"    // Contact failed permanently, or for too long
	Skipped   = "skipped"   // the step was missing or disabled
)

// Consumer has the two handlers of an escalation's messages:
//
//	r.Handle("manhunt.attempt#MESSAGE", c.Try)
//	r.Handle("manhunt.expire#MESSAGE", c.Expire)
//
// Both send a message that is not due yet again. A Consumer is safe for concurrent
// use, also by many processes.
type Consumer struct {
	c   ConsumerConfig
	hop sluice.Middleware
}

// NewConsumer returns a Consumer, or an error that names every missing or invalid
// field.
func NewConsumer(c ConsumerConfig) (*Consumer, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("escalation: %w", err)
	}
	hop := message.Hop(c.Config.Send, message.Options{
		NotBefore: c.Message.NotBefore, MaxDelay: c.Config.MaxDelay, Now: c.Config.Now,
	})
	return &Consumer{c, hop}, nil
}

func (c ConsumerConfig) withDefaults() ConsumerConfig {
	c.Config = c.Config.withDefaults()
	c.Message.NotBefore = cmp.Or(c.Message.NotBefore, "notBefore")
	c.Message.Round = cmp.Or(c.Message.Round, "round")
	c.Message.Repeat = cmp.Or(c.Message.Repeat, "repeat")
	c.Claim.Owner = cmp.Or(c.Claim.Owner, "leaseOwner")
	c.Claim.Until = cmp.Or(c.Claim.Until, "leaseUntil")
	c.Claim.Contacts = cmp.Or(c.Claim.Contacts, "contacts")
	c.Lease = cmp.Or(c.Lease, 2*time.Minute)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.GiveUpAfter = cmp.Or(c.GiveUpAfter, 10*time.Minute)
	return c
}

func (c ConsumerConfig) validate() error {
	var errs []error
	if err := c.Config.validate(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, missing([]required{
		{"Message.Escalation", c.Message.Escalation != ""},
		{"Message.StepID", c.Message.StepID != ""},
		{"Message.Order", c.Message.Order != ""},
		{"Message.Number", c.Message.Number != ""},
		{"AttemptTable", c.AttemptTable != ""},
		{"AttemptKey", len(c.AttemptKey) > 0},
		{"NewAttempt", c.NewAttempt != nil},
		{"Contact", c.Contact != nil},
	})...)
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("Timeout is %v, want more than 0", c.Timeout))
	}
	if c.GiveUpAfter < 0 {
		errs = append(errs, fmt.Errorf("GiveUpAfter is %v, want more than 0", c.GiveUpAfter))
	}
	if c.Lease <= c.Timeout {
		errs = append(errs, fmt.Errorf("Lease is %v, want more than Timeout, %v: a step must not be taken over while it is tried", c.Lease, c.Timeout))
	}
	if least := c.GiveUpAfter + c.Lease; c.Config.Watch.After <= least {
		errs = append(errs, fmt.Errorf("Watch.After is %v, want more than GiveUpAfter and Lease together, %v: until then a step may be tried again", c.Config.Watch.After, least))
	}
	return errors.Join(errs...)
}

// Try handles the message of a step: it claims the step by an attempt with a
// lease, calls Contact, and records the attempt. It is a [sluice.Handler].
func (s *Consumer) Try(ctx context.Context, rec *sluice.Record) error { return s.hop(s.try)(ctx, rec) }

// Expire handles the message at an escalation's end. It is a [sluice.Handler].
func (s *Consumer) Expire(ctx context.Context, rec *sluice.Record) error {
	return s.hop(s.expire)(ctx, rec)
}

func (s *Consumer) expire(ctx context.Context, rec *sluice.Record) error {
	t := Try{}
	err := s.identify(rec.New, &t)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("expiry: %w", err))
	}
	e, err := s.ready(ctx, rec, t)
	if err != nil {
		return err
	}
	return s.c.Config.expire(ctx, e)
}

func (s *Consumer) try(ctx context.Context, rec *sluice.Record) error {
	t, err := s.read(rec.New)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("message of a step: %w", err))
	}
	if t.Escalation, err = s.ready(ctx, rec, t); err != nil {
		return err
	}
	there, err := s.find(ctx, &t)
	if err != nil {
		return err
	}
	held, err := s.claim(ctx, &t)
	if err != nil {
		return err
	}
	if held.other {
		if there, err = s.find(ctx, &t); err != nil {
			s.release(ctx, t, held)
			return err
		}
	}
	if _, err := s.ready(ctx, rec, t); err != nil { // acknowledged or snoozed meanwhile
		s.abandon(ctx, t, held)
		return err
	}
	if !there {
		return s.finish(ctx, t, held, Skipped, errNoStep)
	}

	outcome, err := s.contact(ctx, t, &held)
	if outcome == "" {
		s.release(ctx, t, held)
		return again(t, err)
	}
	return s.finish(ctx, t, held, outcome, err)
}

// errNoStep is the reason for skipping a step without a call.
var errNoStep = errors.New("the step is gone, disabled or malformed")

// ready reads the escalation of a message. If it is over, snoozed, or in another
// round, the error is the message's outcome.
func (s *Consumer) ready(ctx context.Context, rec *sluice.Record, t Try) (Escalation, error) {
	e, err := s.c.Config.active(ctx, t.Escalation.ID)
	if err != nil {
		return e, err
	}
	if e.Round != t.Round {
		return e, sluice.Skip("message of another round")
	}
	delay := message.Delay(e.SnoozedUntil, s.c.Config.Now(), s.c.Config.MaxDelay)
	if delay == 0 {
		return e, nil
	}
	// Send it again, like a message that comes too early.
	m, _ := rec.Message()
	if err := s.c.Config.Send(ctx, sluice.Message{Body: m.Body, Attributes: m.Attributes, Delay: delay}); err != nil {
		return e, fmt.Errorf("sending a message of escalation %s once more, which is snoozed: %w", keyhash.Text(e.ID), err)
	}
	return e, sluice.Skip("escalation snoozed")
}

// read reads a step's message. Missing members stay empty.
func (s *Consumer) read(body sluice.Item) (t Try, err error) {
	m := s.c.Message
	if err = s.identify(body, &t); err != nil {
		return t, err
	}
	f := fields{it: body}
	field(&f, &t.Step.ID, text, m.StepID)
	field(&f, &t.Step.Order, integer, m.Order)
	field(&f, &t.Number, integer, m.Number)
	field(&f, &t.NotBefore, moment, m.NotBefore)
	field(&f, &t.Repeat, count, m.Repeat)
	t.DedupeKey = tryKey(t.Escalation.ID, t.Round, t.Number)
	return t, f.err
}

// identify reads the escalation and round of a message.
func (s *Consumer) identify(body sluice.Item, t *Try) error {
	f := fields{it: body}
	field(&f, &t.Escalation.ID, text, s.c.Message.Escalation)
	field(&f, &t.Round, count, s.c.Message.Round)
	return f.err
}

// find reads the current step. It returns false if the step is missing, disabled
// or bad, or if the escalation cannot continue, which the stream's handler detects
// too. A moved step keeps the message's order, from which the chain continues.
func (s *Consumer) find(ctx context.Context, t *Try) (there bool, err error) {
	e := t.Escalation
	partition, err := s.c.Config.Query(ctx, e.Ladder)
	if err != nil {
		return false, fmt.Errorf("reading ladder %s of escalation %s: %w", keyhash.Text(e.Ladder), keyhash.Text(e.ID), err)
	}
	if s.c.Config.Admit(e, partition) != "" {
		return false, nil
	}
	steps, _ := s.c.Config.Step.ladder(partition) // Start and Next report bad steps
	for _, step := range steps {
		if step.ID == t.Step.ID {
			step.Order = t.Step.Order
			t.Step = step
			return true, nil
		}
	}
	return false, nil
}
