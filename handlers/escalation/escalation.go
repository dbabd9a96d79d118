package escalation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/message"
)

// Config describes one kind of escalation. Where no default is stated the
// field is required. The functions must be safe for concurrent use.
type Config struct {
	Escalation EscalationAttributes
	Step       StepAttributes
	Attempt    AttemptAttributes

	// Get reads an escalation by its id, consistently. The absent Item stands
	// for one that does not exist.
	Get func(ctx context.Context, id string) (sluice.Item, error)

	// Query reads all items of a ladder's partition, consistently, in any
	// order. Those that are no steps are left for Admit to look at.
	Query func(ctx context.Context, partition string) ([]sluice.Item, error)

	// Admit says why an escalation cannot go on with the items that Query
	// returned, or "" (default: it always can). The reason goes to Fail.
	Admit func(e Escalation, partition []sluice.Item) (reason string)

	// NoSteps is the reason that Fail is given for a ladder without a single
	// step (default "no_steps").
	NoSteps string

	// BadSteps is the reason that Fail is given for a ladder that has steps, of
	// which none can be read (default "bad_steps").
	BadSteps string

	// Problem is told of each bad step that is passed over (default: an error in
	// the log of slog.Default).
	Problem func(ctx context.Context, e Escalation, err error)

	// Fail ends an escalation, on condition that it is still active; nil also
	// when it is not.
	Fail func(ctx context.Context, e Escalation, reason string) error

	// StepBody and ExpiryBody make the messages' bodies. What they return must
	// depend on nothing but their argument: no clock, no random value.
	StepBody   func(Try) []byte
	ExpiryBody func(Expiry) []byte

	// ExpireAfter is how long after the last attempt an escalation expires.
	ExpireAfter time.Duration

	// Send makes a message durable. Its attributes are dedupeKey and notBefore.
	Send func(ctx context.Context, m sluice.Message) error

	MaxDelay time.Duration    // of a message (default 15 min, what SQS allows)
	Now      func() time.Time // default time.Now; only for a message's delay
}

// EscalationAttributes name the attributes, or dotted paths, of an escalation.
type EscalationAttributes struct {
	ID      string // key attribute, in an escalation's own records
	Ladder  string // partition of its steps
	Started string // RFC 3339; the wait of the first step counts from here
	Status  string // S
	Active  string // the Status of one that still climbs
}

// AttemptAttributes name the attributes, or dotted paths, of an attempt.
type AttemptAttributes struct {
	Escalation string // id of the escalation
	Number     string // N, from 0
	Order      string // N, of the step that was tried
	StepID     string // of the step that was tried
	At         string // RFC 3339; the wait of the next step counts from here
}

// Escalation is one that still climbs.
type Escalation struct {
	ID      string
	Ladder  string
	Started time.Time
	Item    sluice.Item
}

// Try is a step whose turn it is.
type Try struct {
	Escalation Escalation
	Step       Step
	Number     int64 // from 0
	NotBefore  time.Time
	DedupeKey  string // "<escalation>#<number>"
}

// Expiry is the end of a ladder.
type Expiry struct {
	Escalation Escalation
	NotBefore  time.Time
	DedupeKey  string // "<escalation>#expire"
}

// Escalator holds the two handlers of one kind of escalation. It is safe for
// concurrent use.
type Escalator struct{ c Config }

// New returns an Escalator, or an error that names every field that is missing
// or wrong.
func New(c Config) (*Escalator, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("escalation: %w", err)
	}
	return &Escalator{c}, nil
}

func (c Config) withDefaults() Config {
	if c.Admit == nil {
		c.Admit = func(Escalation, []sluice.Item) string { return "" }
	}
	if c.NoSteps == "" {
		c.NoSteps = "no_steps"
	}
	if c.BadSteps == "" {
		c.BadSteps = "bad_steps"
	}
	if c.Problem == nil {
		c.Problem = func(ctx context.Context, e Escalation, err error) {
			slog.ErrorContext(ctx, "passing over a part of an escalation", "escalation", e.ID, "err", err)
		}
	}
	if c.MaxDelay == 0 {
		c.MaxDelay = message.MaxDelay
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		ok   bool
	}{
		{"Escalation.ID", c.Escalation.ID != ""},
		{"Escalation.Ladder", c.Escalation.Ladder != ""},
		{"Escalation.Started", c.Escalation.Started != ""},
		{"Escalation.Status", c.Escalation.Status != ""},
		{"Escalation.Active", c.Escalation.Active != ""},
		{"Step.ID", c.Step.ID != ""},
		{"Step.Order", c.Step.Order != ""},
		{"Step.WaitSeconds", c.Step.WaitSeconds != ""},
		{"Attempt.Escalation", c.Attempt.Escalation != ""},
		{"Attempt.Number", c.Attempt.Number != ""},
		{"Attempt.Order", c.Attempt.Order != ""},
		{"Attempt.StepID", c.Attempt.StepID != ""},
		{"Attempt.At", c.Attempt.At != ""},
		{"Get", c.Get != nil},
		{"Query", c.Query != nil},
		{"Fail", c.Fail != nil},
		{"StepBody", c.StepBody != nil},
		{"ExpiryBody", c.ExpiryBody != nil},
		{"ExpireAfter", c.ExpireAfter != 0},
		{"Send", c.Send != nil},
	} {
		if !f.ok {
			errs = append(errs, fmt.Errorf("%s is missing", f.name))
		}
	}
	if (c.Step.TypeAttribute == "") != (c.Step.Type == "") {
		errs = append(errs, errors.New("Step.TypeAttribute and Step.Type: want both or neither"))
	}
	if c.ExpireAfter < 0 {
		errs = append(errs, fmt.Errorf("ExpireAfter is %v, want more than 0", c.ExpireAfter))
	}
	if c.MaxDelay < time.Second { // delays are whole seconds
		errs = append(errs, fmt.Errorf("MaxDelay is %v, want at least 1s", c.MaxDelay))
	}
	return errors.Join(errs...)
}

// Start handles the record of a new escalation: it sends the message of the
// first step, or fails an escalation that has none. It is a [sluice.Handler].
func (s *Escalator) Start(ctx context.Context, rec *sluice.Record) error {
	id, err := text(rec.Keys, s.c.Escalation.ID)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("keys: %w", err))
	}
	return s.advance(ctx, id, nil)
}

// Next handles the record of an attempt that was made: it sends the message of
// the step after it, or the expiry. It is a [sluice.Handler].
func (s *Escalator) Next(ctx context.Context, rec *sluice.Record) error {
	if _, made := rec.New.Lookup(s.c.Attempt.At); !made {
		return sluice.Skip("attempt not made")
	}
	a, err := s.c.Attempt.read(rec.New)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("attempt: %w", err))
	}
	return s.advance(ctx, a.escalation, &a)
}

// advance sends what comes after last; nil is the start.
func (s *Escalator) advance(ctx context.Context, id string, last *attempt) error {
	it, err := s.c.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("reading escalation %s: %w", id, err)
	}
	if !it.Exists() {
		return sluice.Skip("escalation not found")
	}
	e, active, err := s.c.Escalation.read(id, it)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("escalation %s: %w", id, err))
	}
	if !active {
		return sluice.Skip("escalation not active")
	}
	partition, err := s.c.Query(ctx, e.Ladder)
	if err != nil {
		return fmt.Errorf("reading ladder %s of escalation %s: %w", e.Ladder, id, err)
	}
	if reason := s.c.Admit(e, partition); reason != "" {
		return s.fail(ctx, e, reason)
	}
	steps, bad := s.c.Step.ladder(partition)
	for _, err := range bad {
		s.c.Problem(ctx, e, fmt.Errorf("ladder %s: %w", e.Ladder, err))
	}

	if last == nil {
		if len(steps) == 0 {
			return s.noSteps(ctx, e, bad)
		}
		return s.try(ctx, e, steps[0], 0, e.Started)
	}
	if next, ok := after(steps, last.rank); ok {
		return s.try(ctx, e, next, last.number+1, last.at)
	}
	return s.expire(ctx, e, last.at)
}

// noSteps ends an escalation that has nobody to call. Bad steps are an error, too:
// whoever wrote them is to know.
func (s *Escalator) noSteps(ctx context.Context, e Escalation, bad []error) error {
	if len(bad) == 0 {
		return s.fail(ctx, e, s.c.NoSteps)
	}
	if err := s.fail(ctx, e, s.c.BadSteps); err != nil {
		return err
	}
	return sluice.Permanent(fmt.Errorf("ladder %s of escalation %s has no good step, and the escalation was failed: %w", e.Ladder, e.ID, errors.Join(bad...)))
}

func (s *Escalator) fail(ctx context.Context, e Escalation, reason string) error {
	if err := s.c.Fail(ctx, e, reason); err != nil {
		return fmt.Errorf("failing escalation %s (%s): %w", e.ID, reason, err)
	}
	return nil
}

func (s *Escalator) try(ctx context.Context, e Escalation, step Step, number int64, since time.Time) error {
	t := Try{
		Escalation: e,
		Step:       step,
		Number:     number,
		NotBefore:  since.Add(step.Wait),
		DedupeKey:  e.ID + "#" + strconv.FormatInt(number, 10),
	}
	return s.send(ctx, s.c.StepBody(t), t.NotBefore, t.DedupeKey)
}

func (s *Escalator) expire(ctx context.Context, e Escalation, since time.Time) error {
	x := Expiry{Escalation: e, NotBefore: since.Add(s.c.ExpireAfter), DedupeKey: e.ID + "#expire"}
	return s.send(ctx, s.c.ExpiryBody(x), x.NotBefore, x.DedupeKey)
}

func (s *Escalator) send(ctx context.Context, body []byte, notBefore time.Time, key string) error {
	m := sluice.Message{
		Body:  string(body),
		Delay: message.Delay(notBefore, s.c.Now(), s.c.MaxDelay),
		Attributes: map[string]sluice.MessageAttribute{
			"dedupeKey": sluice.StringAttribute(key),
			"notBefore": sluice.StringAttribute(message.FormatTime(notBefore)),
		},
	}
	if err := s.c.Send(ctx, m); err != nil {
		return fmt.Errorf("sending %s: %w", key, err)
	}
	return nil
}
