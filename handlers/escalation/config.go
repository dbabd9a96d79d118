package escalation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/metrics"
)

// Config describes one kind of escalation. A field without a stated default is
// required. The functions must be safe for concurrent use.
type Config struct {
	Escalation EscalationAttributes
	Step       StepAttributes
	Attempt    AttemptAttributes

	// Table and Key locate an escalation, to write the number of a new round.
	Table string
	Key   func(id string) sluice.Item

	// Get reads an escalation by its id, consistently. A missing one is the
	// absent Item.
	Get func(ctx context.Context, id string) (sluice.Item, error)

	// Query reads all items of a ladder's partition, consistently, in any
	// order. It may include other items for Admit.
	Query func(ctx context.Context, partition string) ([]sluice.Item, error)

	// GetAttempt reads an attempt, consistently. A missing one is the absent
	// Item.
	GetAttempt func(ctx context.Context, id string, round, number int64) (sluice.Item, error)

	// Write makes one write. A failed condition is a [*dynamo.ConditionError]
	// with its Items.
	Write func(ctx context.Context, op dynamo.Op) error

	// Admit returns why an escalation cannot continue with the items of Query,
	// or "" (default: it always can). The reason goes to Fail.
	Admit func(e Escalation, partition []sluice.Item) (reason string)

	// Reasons for Fail.
	NoSteps    string // the ladder has no step (default "no_steps")
	BadSteps   string // no step of the ladder is readable (default "bad_steps")
	NoResponse string // the escalation expires (default "no_response")

	// NobodyCalled is the reason when the escalation expires and every attempt
	// of the round failed or was skipped (default "nobody_called"). It also
	// raises an alarm.
	NobodyCalled string

	// Problem is called for each bad step that is skipped, and for each
	// optional attribute that is ignored because of a bad value (default: an
	// error in the log of slog.Default).
	Problem func(ctx context.Context, e Escalation, err error)

	// Fail ends an escalation if it is still active and in the same round
	// ([EscalationAttributes.StillIn]). Otherwise it returns nil too.
	Fail func(ctx context.Context, e Escalation, reason string) error

	// StepBody and ExpiryBody make the message bodies. The result must depend
	// only on the argument: no clock, no random value.
	StepBody   func(Try) []byte
	ExpiryBody func(Expiry) []byte

	// ExpireAfter is the time from the last attempt of a climb until the
	// escalation expires or the ladder repeats.
	ExpireAfter time.Duration

	// Repeat is the number of further climbs, unless an attribute of the
	// escalation sets it (default 0).
	Repeat int64

	// Send makes a message durable. Its attributes are dedupeKey and notBefore.
	Send func(ctx context.Context, m sluice.Message) error

	Watch Watchdog

	Metrics metrics.Meter // of calls, alarms and problems (default: none)
	Kind    string        // label of the metrics (default "escalation")
	counts  series

	MaxDelay time.Duration    // of a message (default 15 min, the limit of SQS)
	Now      func() time.Time // default time.Now; only for the delay of a message
}

// EscalationAttributes name the attributes, or dotted paths, of an escalation.
type EscalationAttributes struct {
	ID      string // key attribute, in an escalation's own records
	Ladder  string // partition of its steps
	Started string // RFC 3339; the wait of the first step counts from here
	Status  string // S, top-level
	Active  string // Status of an active escalation

	// Round and RoundStarted are top-level and written when a new round begins.
	// The later of Started and RoundStarted is the start of a round.
	Round        string // N, 0 when it is missing (default "round")
	RoundStarted string // RFC 3339 (default "roundStarted")

	// Optional attributes; "" is none.
	SnoozedUntil string // RFC 3339; no message and no call before
	ResumeAt     string // N; a round begins at the first step of this order or later
	Repeat       string // N; overrides Config.Repeat
}

// AttemptAttributes name the attributes, or dotted paths, of an attempt.
type AttemptAttributes struct {
	Escalation string // id of the escalation
	Number     string // N, from 0 in each round
	Order      string // N, of the attempted step
	StepID     string // of the attempted step
	At         string // RFC 3339; the wait of the next step counts from here
	Round      string // N, 0 when it is missing (default "round")
	Repeat     string // N, 0 when it is missing (default "repeat")
	Outcome    string // Contacted, Failed or Skipped; Contacted when it is missing (default "outcome")
}

// Escalation is an active escalation.
type Escalation struct {
	ID           string
	Ladder       string
	Round        int64
	Started      time.Time // start of the round
	SnoozedUntil time.Time // zero: not snoozed
	Item         sluice.Item

	resumeAt, repeat *int64
	problems         []error // of optional attributes
}

// Try is a step to try.
type Try struct {
	Escalation Escalation
	Step       Step
	Round      int64
	Repeat     int64  // of the ladder, 0 in the first climb
	Number     int64  // from 0 in each round
	Contact    string // the one of Step.Contacts to call, in a call of ConsumerConfig.Contact
	NotBefore  time.Time
	DedupeKey  string // "<escalation>#<number>", in a later round "<escalation>#<number>@<round>", of one of several contacts with "/<contact>"
}

// Expiry is the end of a ladder.
type Expiry struct {
	Escalation Escalation
	Round      int64
	NotBefore  time.Time
	DedupeKey  string // "<escalation>#expire", in a later round "<escalation>#expire@<round>"
}

// dedupeKey identifies a message of an escalation.
func dedupeKey(id, what string, round int64) string {
	key := id + "#" + what
	if round != 0 {
		key += "@" + strconv.FormatInt(round, 10)
	}
	return key
}

const defaultRound = "round"

func (c Config) withDefaults() Config {
	if c.Admit == nil {
		c.Admit = func(Escalation, []sluice.Item) string { return "" }
	}
	if c.Problem == nil {
		c.Problem = func(ctx context.Context, e Escalation, err error) {
			slog.ErrorContext(ctx, "passing over a part of an escalation", "escalation", keyhash.Text(e.ID), "error", err)
		}
	}
	c.NoSteps = cmp.Or(c.NoSteps, "no_steps")
	c.BadSteps = cmp.Or(c.BadSteps, "bad_steps")
	c.NoResponse = cmp.Or(c.NoResponse, "no_response")
	c.NobodyCalled = cmp.Or(c.NobodyCalled, "nobody_called")
	c.Escalation.Round = cmp.Or(c.Escalation.Round, defaultRound)
	c.Escalation.RoundStarted = cmp.Or(c.Escalation.RoundStarted, "roundStarted")
	c.Attempt.Round = cmp.Or(c.Attempt.Round, "round")
	c.Attempt.Repeat = cmp.Or(c.Attempt.Repeat, "repeat")
	c.Attempt.Outcome = cmp.Or(c.Attempt.Outcome, "outcome")
	c.Kind = cmp.Or(c.Kind, "escalation")
	c.counts = newSeries(c.Metrics, c.Kind)
	c.Watch.After = cmp.Or(c.Watch.After, 15*time.Minute)
	c.MaxDelay = cmp.Or(c.MaxDelay, message.MaxDelay)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) validate() error {
	errs := missing([]required{
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
		{"Table", c.Table != ""},
		{"Key", c.Key != nil},
		{"Get", c.Get != nil},
		{"Query", c.Query != nil},
		{"GetAttempt", c.GetAttempt != nil},
		{"Write", c.Write != nil},
		{"Fail", c.Fail != nil},
		{"StepBody", c.StepBody != nil},
		{"ExpiryBody", c.ExpiryBody != nil},
		{"ExpireAfter", c.ExpireAfter != 0},
		{"Send", c.Send != nil},
		{"Watch.Kind", c.Watch.Kind != ""},
		{"Watch.Send", c.Watch.Send != nil},
		{"Watch.Alarm", c.Watch.Alarm != nil},
	})
	for _, f := range []struct{ name, path string }{
		{"Status", c.Escalation.Status}, {"Round", c.Escalation.Round}, {"RoundStarted", c.Escalation.RoundStarted},
	} {
		if strings.Contains(f.path, ".") {
			errs = append(errs, fmt.Errorf("Escalation.%s is %q, within a map: want an attribute of its own, which is written", f.name, f.path))
		}
	}
	if (c.Step.TypeAttribute == "") != (c.Step.Type == "") {
		errs = append(errs, errors.New("Step.TypeAttribute and Step.Type: want both or neither"))
	}
	if c.ExpireAfter < 0 {
		errs = append(errs, fmt.Errorf("ExpireAfter is %v, want more than 0", c.ExpireAfter))
	}
	if c.Watch.After < 0 {
		errs = append(errs, fmt.Errorf("Watch.After is %v, want more than 0", c.Watch.After))
	}
	if c.Repeat < 0 {
		errs = append(errs, fmt.Errorf("Repeat is %d, want 0 or more", c.Repeat))
	}
	if c.MaxDelay < time.Second { // delays are whole seconds
		errs = append(errs, fmt.Errorf("MaxDelay is %v, want at least 1s", c.MaxDelay))
	}
	return errors.Join(errs...)
}

// required is a field that has no default.
type required struct {
	name string
	set  bool
}

func missing(fields []required) (errs []error) {
	for _, f := range fields {
		if !f.set {
			errs = append(errs, fmt.Errorf("%s is missing", f.name))
		}
	}
	return errs
}
