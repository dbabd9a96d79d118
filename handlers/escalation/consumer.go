package escalation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/internal/keyhash"
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

	// Contact tries a step, or one of its contacts, which are called at the same
	// time. Its DedupeKey is the same in every call for that contact: a provider
	// that is given it as an idempotency key does not disturb anybody twice. It
	// must return soon after ctx has ended. nil is an attempt that was made; so is
	// a [sluice.Permanent] error, and a [sluice.Skip] passes the contact over. Any
	// other is tried again, if it is a [sluice.RetryAfter] not before that.
	Contact func(ctx context.Context, t Try) error

	// Called, if it is set, is told of each call of Contact, concurrently; outcome
	// is "" when it is to be repeated.
	Called func(t Try, outcome string, err error)

	// Lease is how long a step belongs to who tries it (default 2 min). After
	// a crash in the middle it is tried again when the lease is over. It must
	// be longer than Timeout by more than clocks differ.
	Lease time.Duration
	// Timeout bounds one call of Contact, with the claim before it (default 30 s).
	Timeout time.Duration
	// GiveUpAfter is how long after it was due a contact is tried again when
	// Contact fails for the moment, or panics (default 10 min). It then counts
	// as attempted, so that the next step has its turn; at once when a
	// [sluice.RetryAfter] asks for longer than that.
	GiveUpAfter time.Duration
}

// MessageMembers name the members, or dotted paths, of a message's body.
type MessageMembers struct {
	Escalation string // id of the escalation
	StepID     string
	Order      string // of the step
	Number     string // of the attempt
	Round      string // default "round"; a message without it is of round 0
	Repeat     string // default "repeat"; a message without it is of the first climb
	NotBefore  string // default "notBefore"
}

// ClaimAttributes name what the consumer writes into an attempt, beside those of
// [AttemptAttributes]. All are top-level, and strings where nothing else is said.
type ClaimAttributes struct {
	Owner string // of the lease (default "leaseOwner")
	Until string // end of the lease, in RFC 3339 (default "leaseUntil")

	// Contacts has the outcomes of a step's contacts by their names, a map
	// (default "contacts").
	Contacts string

	// Error says why a step has failed or was skipped: the text of the error that
	// Contact returned, 1,024 bytes of it at most (default: it is not kept).
	Error string
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
		{&c.Message.Round, "round"},
		{&c.Message.Repeat, "repeat"},
		{&c.Claim.Owner, "leaseOwner"},
		{&c.Claim.Until, "leaseUntil"},
		{&c.Claim.Contacts, "contacts"},
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
	if least := c.GiveUpAfter + c.Lease; c.Config.Watch.After <= least {
		errs = append(errs, fmt.Errorf("Watch.After is %v, want more than GiveUpAfter and Lease together, %v: until then a step may be tried again", c.Config.Watch.After, least))
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

// errNoStep is why a step is skipped before anybody is called.
var errNoStep = errors.New("the step is gone, disabled or malformed")

// ready reads the escalation of a message; one that is over, in another round, or
// snoozed, is the message's outcome.
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
	// As a message that comes too early, it is sent once more.
	m, _ := rec.Message()
	if err := s.c.Config.Send(ctx, sluice.Message{Body: m.Body, Attributes: m.Attributes, Delay: delay}); err != nil {
		return e, fmt.Errorf("sending a message of escalation %s once more, which is snoozed: %w", keyhash.Text(e.ID), err)
	}
	return e, sluice.Skip("escalation snoozed")
}

// read reads a step's message. What is not in it is left empty.
func (s *Consumer) read(body sluice.Item) (t Try, err error) {
	m := s.c.Message
	if err = s.identify(body, &t); err != nil {
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
	if t.Repeat, err = count(body, m.Repeat); err != nil {
		return t, err
	}
	t.DedupeKey = tryKey(t.Escalation.ID, t.Round, t.Number)
	return t, nil
}

// identify reads which escalation and which round a message is of.
func (s *Consumer) identify(body sluice.Item, t *Try) (err error) {
	if t.Escalation.ID, err = text(body, s.c.Message.Escalation); err != nil {
		return err
	}
	t.Round, err = count(body, s.c.Message.Round)
	return err
}

// find fills in the step as it is now; false when it is gone, disabled or bad, or
// when the escalation cannot go on, which the stream's handler will find, too.
// A step that was moved keeps the message's order, from which the chain goes on.
func (s *Consumer) find(ctx context.Context, t *Try) (there bool, err error) {
	e := t.Escalation
	partition, err := s.c.Config.Query(ctx, e.Ladder)
	if err != nil {
		return false, fmt.Errorf("reading ladder %s of escalation %s: %w", keyhash.Text(e.Ladder), keyhash.Text(e.ID), err)
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
