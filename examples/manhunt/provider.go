package manhunt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/handlers/escalation/webhook"
)

// Provider reaches a contact in one way. nil means that it tried. [Table.Respond]
// records later whether the contact answers.
type Provider func(ctx context.Context, c Call) error

// Call is one attempt to reach a contact.
type Call struct {
	SearchID, DomainID, ContactID string
	MethodID, Type, Destination   string
	Step                          int64
	DedupeKey                     string // the same whenever this step is tried
	Message                       Message
}

// contact tries a step with the provider of its method's type. The attempt says
// where: a process that died may have begun it before the method was edited. Only an
// attempt that another program has put may not say it.
func (a *app) contact(ctx context.Context, t escalation.Try) error {
	id := t.Escalation.ID
	attempt, err := a.table.get(ctx, id, AttemptID(id, t.Round, t.Number), "searchAttempt")
	if err != nil {
		return err
	}
	contact, err := a.table.get(ctx, t.Escalation.Ladder, "contact", "contact")
	switch {
	case err != nil:
		return err
	case !attempt.Exists() || !contact.Exists():
		return sluice.Skip("the attempt or the contact was removed")
	}
	c := Call{
		SearchID: id, DomainID: attribute(t.Escalation.Item, "domainId"), ContactID: t.Escalation.Ladder,
		MethodID:    t.Step.ID,
		Type:        cmp.Or(attribute(attempt, "method.type"), attribute(t.Step.Item, "type")),
		Destination: cmp.Or(attribute(attempt, "method.destination"), attribute(t.Step.Item, "destination")),
		Step:        t.Number, DedupeKey: t.DedupeKey,
	}
	p := a.d.Providers[c.Type]
	switch {
	case p == nil:
		return sluice.Permanent(fmt.Errorf("there is no provider for methods of type %q", c.Type))
	case c.Destination == "":
		return sluice.Permanent(errors.New("the method's destination is missing, or no text"))
	}
	if c.Message, err = a.message(t, c.Type, contact); err != nil {
		return sluice.Permanent(err)
	}
	return p(ctx, c)
}

// called says in the log that a contact was not reached. The attempt says why.
func (a *app) called(t escalation.Try, outcome string, err error) {
	if outcome == escalation.Failed {
		a.d.Logger.Warn("a contact was not reached; the attempt has the error", "search", Named(t.Escalation.Item), "type", attribute(t.Step.Item, "type"), "step", t.Number)
	}
	if a.d.Called != nil {
		a.d.Called(t, outcome, err)
	}
}

// Webhook is the provider of methods whose destination is a URL.
func Webhook(hook *webhook.Client) Provider {
	return func(ctx context.Context, c Call) error {
		return hook.Post(ctx, c.Destination, c.DedupeKey, []byte(c.Message.Body))
	}
}

// Pretend replaces a carrier: it logs that it has reached somebody, and has not.
// It writes the message as a line of JSON to outbox, in one write, because
// attempts run concurrently.
func Pretend(logger *slog.Logger, outbox io.Writer) Provider {
	return func(ctx context.Context, c Call) error {
		var line bytes.Buffer
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false) // people read it
		err := e.Encode(struct {
			Type        string `json:"type"`
			Destination string `json:"destination"`
			Subject     string `json:"subject,omitempty"`
			Text        string `json:"text"`
			DedupeKey   string `json:"dedupeKey"`
		}{c.Type, c.Destination, c.Message.Subject, c.Message.Text, c.DedupeKey})
		if err == nil {
			_, err = outbox.Write(line.Bytes())
		}
		if err != nil {
			return fmt.Errorf("writing to the outbox: %w", err)
		}
		logger.InfoContext(ctx, "pretending to reach a contact", "type", c.Type, "search", Named(key(c.SearchID, "search")), "step", c.Step)
		return nil
	}
}
