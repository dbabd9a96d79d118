package manhunt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/item"
)

var searches = escalation.EscalationAttributes{
	ID: "PK", Ladder: "contactId", Started: "GSI1SK", Status: "status", Active: Active, SnoozedUntil: "snoozedUntil",
}

// escalation says what of the items means what.
func (a *app) escalation() escalation.Config {
	return escalation.Config{
		Escalation: searches,
		Step: escalation.StepAttributes{
			TypeAttribute: "entityType", Type: "contactMethod", Enabled: "enabled",
			ID: "SK", Order: "order", WaitSeconds: "waitSeconds",
		},
		Attempt: escalation.AttemptAttributes{
			Escalation: "PK", Number: "step", Order: "method.order", StepID: "method.methodId", At: "attemptedDatetime",
		},
		Table: a.d.Table,
		Key:   func(id string) sluice.Item { return key(id, "search") },
		Get:   a.search,
		GetAttempt: func(ctx context.Context, id string, round, step int64) (sluice.Item, error) {
			return a.table.get(ctx, id, AttemptID(id, round, step), "searchAttempt")
		},
		Write:   a.d.Store.Write,
		Query:   a.table.partition,
		Admit:   admit,
		NoSteps: noContactMethods, BadSteps: badMethods, NoResponse: noResponse,
		Problem: func(ctx context.Context, e escalation.Escalation, err error) {
			a.d.Logger.ErrorContext(ctx, "passing over a part of a search", "search", Named(e.Item), "err", err)
		},
		Fail:        a.table.endRound,
		StepBody:    attemptBody,
		ExpiryBody:  expireBody,
		ExpireAfter: 300 * time.Second,
		Send:        a.d.Send,
		Metrics:     a.d.Metrics,
		Kind:        "search",
		Watch:       escalation.Watchdog{Kind: "manhunt.watch", Send: a.d.Watch, Alarm: a.d.Alarm},
		MaxDelay:    a.d.MaxDelay,
		Now:         a.d.Now,
	}
}

func (a *app) consumer(c escalation.Config) escalation.ConsumerConfig {
	return escalation.ConsumerConfig{
		Config:       c,
		Message:      escalation.MessageMembers{Escalation: "searchId", StepID: "methodId", Order: "order", Number: "step"},
		AttemptTable: a.d.Table,
		AttemptKey:   []string{"PK", "SK"},
		NewAttempt:   newAttempt,
		Claim:        escalation.ClaimAttributes{Error: "error"},
		Contact:      a.contact,
		Called:       a.called,
	}
}

// admit holds that the contact exists and belongs to the search's domain.
func admit(e escalation.Escalation, partition []sluice.Item) string {
	domain := attribute(e.Item, "domainId")
	if slices.ContainsFunc(partition, func(it sluice.Item) bool { return isContact(it, domain) }) {
		return ""
	}
	return contactNotFound
}

// AttemptID is the sort key of a search's attempt. It is made like the attempt's
// DedupeKey, which contains the round from 1 on.
func AttemptID(searchID string, round, step int64) string {
	id := searchID + "#" + strconv.FormatInt(step, 10)
	if round > 0 {
		id += "@" + strconv.FormatInt(round, 10)
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// newAttempt is an attempt before it is made. It keeps what it is about to use of the
// method, which may be edited later. Of a method that is gone only the place is known.
func newAttempt(t escalation.Try) sluice.Item {
	method := []item.Attribute{item.String("methodId", t.Step.ID)}
	for _, name := range []string{"type", "destination", "name"} {
		if v := attribute(t.Step.Item, name); v != "" {
			method = append(method, item.String(name, v))
		}
	}
	method = append(method, item.Number("order", strconv.FormatInt(t.Step.Order, 10)))
	return item.Of(
		item.String("entityType", "searchAttempt"),
		item.String("PK", t.Escalation.ID),
		item.String("SK", AttemptID(t.Escalation.ID, t.Round, t.Number)),
		item.String("contactId", t.Escalation.Ladder),
		item.String("domainId", attribute(t.Escalation.Item, "domainId")),
		item.Number("step", strconv.FormatInt(t.Number, 10)),
		item.Map("method", item.Of(method...)),
	)
}

func attemptBody(t escalation.Try) []byte {
	var b message.Body
	head(&b, "manhunt.attempt", t.Escalation).
		Str("methodId", t.Step.ID).
		Int("order", t.Step.Order).
		Int("step", t.Number)
	return inRound(&b, t.Round).
		Time("notBefore", t.NotBefore).
		Str("dedupeKey", t.DedupeKey).
		Bytes()
}

func expireBody(x escalation.Expiry) []byte {
	var b message.Body
	head(&b, "manhunt.expire", x.Escalation)
	return inRound(&b, x.Round).
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

// inRound adds the round of a search that was reopened.
func inRound(b *message.Body, round int64) *message.Body {
	if round > 0 {
		b.Int("round", round)
	}
	return b
}
