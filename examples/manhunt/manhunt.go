// Package manhunt looks for people: a search tries a contact's methods (call,
// text, email, webhook) in their order, with waits, until the contact answers,
// the search is cancelled, or the methods run out.
//
// One table holds contacts, their methods, searches and attempts. This package
// is the side that the table's stream drives: a new search queues its first
// step, an attempt that was made queues the next one, and after the last the
// expiry. The searches' own program consumes the queue.
//
// [NewRouter] is the whole of it; main runs it as a daemon or as a Lambda
// function.
package manhunt

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/message"
	"github.com/sluicehq/sluice/router"
)

// Deps is what the routes work on.
type Deps struct {
	Store Store
	Send  func(ctx context.Context, m sluice.Message) error
	Now   func() time.Time // default time.Now
}

// Store is what the routes ask of the table; [Table] is one.
type Store interface {
	// SearchItem reads a search, consistently; the absent Item if there is none.
	SearchItem(ctx context.Context, searchID string) (sluice.Item, error)
	// ContactItems reads a contact and its methods, consistently.
	ContactItems(ctx context.Context, contactID string) ([]sluice.Item, error)
	// FailSearch ends a search that is still active; nil also when it is not.
	FailSearch(ctx context.Context, searchID, contactID, resolution string) error
}

// Resolutions of a failed search.
const (
	contactNotFound  = "contact_not_found"
	noContactMethods = "no_contact_methods"
)

// NewRouter returns Manhunt's routes. They read the table before they act and
// do nothing for a search that is over, so that they take redriven records.
func NewRouter(d Deps, opts ...router.RouterOption) (*router.Router, error) {
	e, err := escalation.New(escalation.Config{
		Escalation: escalation.EscalationAttributes{
			ID: "PK", Ladder: "contactId", Started: "GSI1SK", Status: "status", Active: "active",
		},
		Step: escalation.StepAttributes{
			TypeAttribute: "entityType", Type: "contactMethod", Enabled: "enabled",
			ID: "SK", Order: "order", WaitSeconds: "waitSeconds",
		},
		Attempt: escalation.AttemptAttributes{
			Escalation: "PK", Number: "step", Order: "method.order", StepID: "method.methodId", At: "attemptedDatetime",
		},
		Get:     d.Store.SearchItem,
		Query:   d.Store.ContactItems,
		Admit:   admit,
		NoSteps: noContactMethods,
		Fail: func(ctx context.Context, e escalation.Escalation, reason string) error {
			return d.Store.FailSearch(ctx, e.ID, e.Ladder, reason)
		},
		StepBody:    attemptBody,
		ExpiryBody:  expireBody,
		ExpireAfter: 300 * time.Second,
		Send:        d.Send,
		Now:         d.Now,
	})
	if err != nil {
		return nil, fmt.Errorf("manhunt: %w", err)
	}
	r := router.New(opts...)
	r.Handle("search#INSERT", e.Start, router.Name("first step"), router.Redrive())
	r.Handle("searchAttempt#MODIFY", e.Next, router.Name("next step"), router.Set("attemptedDatetime"), router.Redrive())
	return r, nil
}

// admit holds that the contact exists and belongs to the search's domain: one
// of another domain behaves as missing.
func admit(e escalation.Escalation, partition []sluice.Item) string {
	domain := attribute(e.Item, "domainId")
	for _, it := range partition {
		if attribute(it, "entityType") == "contact" && attribute(it, "SK") == "contact" && domain != "" && attribute(it, "GSI1PK") == domain {
			return ""
		}
	}
	return contactNotFound
}

func attemptBody(t escalation.Try) []byte {
	var b message.Body
	return head(&b, "manhunt.attempt", t.Escalation).
		Str("methodId", t.Step.ID).
		Int("order", t.Step.Order).
		Int("step", t.Number).
		Time("notBefore", t.NotBefore).
		Str("dedupeKey", t.DedupeKey).
		Bytes()
}

func expireBody(x escalation.Expiry) []byte {
	var b message.Body
	return head(&b, "manhunt.expire", x.Escalation).
		Time("notBefore", x.NotBefore).
		Str("dedupeKey", x.DedupeKey).
		Bytes()
}

func head(b *message.Body, kind string, e escalation.Escalation) *message.Body {
	return b.Str("kind", kind).
		Int("v", 1).
		Str("searchId", e.ID).
		Str("domainId", attribute(e.Item, "domainId")).
		Str("contactId", e.Ladder)
}

func attribute(it sluice.Item, name string) string {
	v, _ := it.Lookup(name)
	return v.Str()
}
