package manhunt

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/handlers/escalation/webhook"
	"github.com/sluicehq/sluice/message"
)

// Provider reaches a contact in one way. nil says that it was tried: whether
// the contact answers is told later, with [Table.Answer].
type Provider func(ctx context.Context, c Call) error

// Call is one attempt to reach a contact.
type Call struct {
	SearchID, DomainID, ContactID string
	MethodID, Type, Destination   string
	Step                          int64
	DedupeKey                     string // the same whenever this step is tried
}

// contact tries a step with the provider of its method's type.
func (a *app) contact(ctx context.Context, t escalation.Try) error {
	c := Call{
		SearchID: t.Escalation.ID, DomainID: attribute(t.Escalation.Item, "domainId"), ContactID: t.Escalation.Ladder,
		MethodID: t.Step.ID, Type: attribute(t.Step.Item, "type"), Destination: attribute(t.Step.Item, "destination"),
		Step: t.Number, DedupeKey: t.DedupeKey,
	}
	p := a.d.Providers[c.Type]
	if p == nil {
		return sluice.Permanent(fmt.Errorf("there is no provider for methods of type %q", c.Type))
	}
	return p(ctx, c)
}

// Webhook is the provider of methods whose destination is a URL.
func Webhook(hook *webhook.Client) Provider {
	return func(ctx context.Context, c Call) error {
		var b message.Body
		b.Str("kind", "manhunt.contact").
			Int("v", 1).
			Str("searchId", c.SearchID).
			Str("domainId", c.DomainID).
			Str("contactId", c.ContactID).
			Str("methodId", c.MethodID).
			Int("step", c.Step).
			Str("dedupeKey", c.DedupeKey)
		return hook.Post(ctx, webhook.Call{URL: c.Destination, Key: c.DedupeKey, Body: b.Bytes()})
	}
}

// Pretend stands in for a carrier: it says in the log that it has reached
// somebody, and has not.
func Pretend(logger *slog.Logger) Provider {
	return func(ctx context.Context, c Call) error {
		logger.InfoContext(ctx, "pretending to reach a contact", "type", c.Type, "contact", c.ContactID, "key", c.DedupeKey)
		return nil
	}
}
