package config

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/handlers/escalation/webhook"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
)

// Contact calls a URL. A POST for a step, or for each of its contacts, with
// Idempotency-Key. 2xx: taken. 4xx but 408, 425 and 429: refused, the next step has
// its turn. Else: tried again. Templates have {escalation.<path>}, {step.<path>},
// {contact}, {number}, {round}, {repeat} and {dedupeKey}.
type Contact struct {
	// Template, such as '{step.url}'.
	URL string `yaml:"url" is:"required"`
	// Template, as in send. Default:
	// {"kind":"<kind>.contact","escalation","ladder","step","contact","number","round","repeat","dedupeKey"};
	// contact if the step has several, round and repeat if not 0.
	Body string `yaml:"body"`
	// Time limit of a call. Default 30s.
	Timeout Duration `yaml:"timeout" is:"min=1s" default:"30s"`
	// Time that a process owns a step. After a crash the step is tried again then.
	// Default 2m.
	Lease Duration `yaml:"lease" is:"min=2s" default:"2m"`
	// Time for which a failing call is tried again. Default 10m.
	GiveUpAfter Duration `yaml:"giveUpAfter" is:"min=1s" default:"10m"`
	// Allow http. Default false.
	AllowHTTP bool `yaml:"allowHttp" default:"false"`
	// Allow private, loopback and link-local addresses. Default false.
	AllowPrivate bool `yaml:"allowPrivate" default:"false"`
}

const defaultCall = 30 * time.Second // time limit of a call

// checkContact notes the mistakes of a route with do: contact. whole is o with the
// fields of its start route.
func (o *Escalate) checkContact(c *Config, path string, whole Escalate) {
	if o.Contact == nil {
		c.doc.add(path+".contact", "it is missing; a route of contact calls its url")
		return
	}
	newCaller("", o.Contact, func(field string, err error) { c.note(path+".contact"+field, err) })
	if l := whole.Ladder; l != nil {
		c.note(path+".ladder", l.written())
		c.note(path+".ladder", c.continued(l.Attempt.Set))
	}
}

// buildContact makes the consumer of an escalation's messages.
func (b *builder) buildContact(l *ladder, c escalation.Config, o Escalate) (*built, error) {
	call := newCaller(o.Kind, o.Contact, func(string, error) {}) // check reports the errors
	timeout := cmp.Or(time.Duration(o.Contact.Timeout), defaultCall)
	var err error
	if call.hook, err = webhook.New(webhook.Options{Timeout: timeout, AllowHTTP: o.Contact.AllowHTTP, AllowPrivate: o.Contact.AllowPrivate}); err != nil {
		return nil, err
	}
	consumer, err := escalation.NewConsumer(escalation.ConsumerConfig{
		Config:       c,
		Message:      escalation.MessageMembers{Escalation: "escalation", StepID: "step", Order: "order", Number: "number"},
		AttemptTable: l.table,
		AttemptKey:   slices.Sorted(maps.Keys(l.Attempt.Key)),
		NewAttempt:   l.newAttempt,
		Claim:        escalation.ClaimAttributes{Error: cmp.Or(l.Attempt.Error, "error")},
		Contact:      call.contact,
		Called: func(t escalation.Try, outcome string, err error) {
			if err != nil {
				b.s.Logger.Warn("calling for an escalation failed", "kind", o.Kind, "key", keyhash.Text(t.DedupeKey), "outcome", outcome, "err", err)
			}
		},
		Lease:       time.Duration(o.Contact.Lease),
		Timeout:     timeout,
		GiveUpAfter: time.Duration(o.Contact.GiveUpAfter),
	})
	if err != nil {
		return nil, err
	}
	handle := func(ctx context.Context, rec *sluice.Record) error {
		switch kind, _ := rec.New.Lookup("kind"); kind.Str() {
		case o.Kind + ".attempt":
			return consumer.Try(ctx, rec)
		case o.Kind + ".expire":
			return consumer.Expire(ctx, rec)
		}
		return sluice.Permanent(fmt.Errorf("it is no message of a step or an expiry: want the kind %s.attempt or %s.expire", o.Kind, o.Kind))
	}
	// The consumer decides when to give a step up. Until then Sluice must not park its
	// message, and must retry it soon.
	made := &built{late: true, handle: handle, options: []router.Option{router.Attempts(10_000), router.Backoff(time.Second, 20*time.Second)}}
	made.Explain = func(_ context.Context, rec *sluice.Record) ([]Effect, error) {
		key, _ := rec.New.Lookup("dedupeKey")
		does := "when it is due, end the escalation, if it is still active"
		if kind, _ := rec.New.Lookup("kind"); kind.Str() == o.Kind+".attempt" {
			does = "when it is due, and the escalation still active, claim the attempt, call for it, and write what came of it"
		}
		return []Effect{{Does: does, Sink: b.sinks.storeName, Target: l.table, Key: key.Str()}}, nil
	}
	return made, nil
}

// written returns an error for an attribute of an attempt that Sluice cannot write.
func (l *Ladder) written() error {
	at := l.Attempt
	for _, one := range append(at.names(), Text{"escalation", at.Escalation}) {
		if strings.Contains(one.Value, ".") {
			return fmt.Errorf("attempt.%s is %q, within a map: want an attribute, which is written", one.Name, one.Value)
		}
	}
	for name := range at.Set {
		if _, isKey := at.Key[name]; isKey {
			return fmt.Errorf("attempt.set has %s, an attribute of attempt.key", name)
		}
	}
	return nil
}

// continued returns an error if no route with do: next takes the records of attempts.
// Then only the watchdog would continue, late and with an alarm for each step.
func (c *Config) continued(set map[string]string) error {
	if e := c.EntityType; e.Key != nil || len(e.Tables)+len(e.First) > 0 {
		return nil // only the items show their type
	}
	name := cmp.Or(c.EntityType.Attribute, "entityType")
	typ := set[name]
	if typ == "" {
		return fmt.Errorf("attempt.set has no %s: want the entity type of attempts, such as {%s: attempt}, which a route of next takes", name, name)
	}
	var others []string
	for _, rt := range c.Routes {
		if rt.Escalate == nil || rt.Escalate.Do != "next" {
			continue
		}
		patterns := strings.Fields(strings.Join(rt.On, " "))
		if slices.ContainsFunc(patterns, func(p string) bool {
			return slices.Contains([]string{typ + "#MODIFY", typ + "#*", "*#MODIFY", "*#*"}, p)
		}) {
			return nil
		}
		others = append(others, patterns...)
	}
	if len(others) == 0 {
		return nil // another program may have the route
	}
	return fmt.Errorf("attempt.set has %s: %s, and routes of next take %s: want %s#MODIFY", name, typ, strings.Join(others, ", "), typ)
}

// newAttempt returns the attempt of a step before the call.
func (l *ladder) newAttempt(t escalation.Try) sluice.Item {
	at := l.Attempt
	var attrs []item.Attribute
	for _, name := range slices.Sorted(maps.Keys(at.Set)) {
		attrs = append(attrs, item.String(name, at.Set[name]))
	}
	if _, isKey := at.Key[at.Escalation]; !isKey {
		attrs = append(attrs, item.String(at.Escalation, t.Escalation.ID))
	}
	return l.attemptKey(t.Escalation.ID, t.Round, t.Number).With(append(attrs,
		item.Number(at.Number, strconv.FormatInt(t.Number, 10)),
		item.Number(at.Order, strconv.FormatInt(t.Step.Order, 10)),
		item.String(at.StepID, t.Step.ID),
	)...)
}

// caller calls URLs.
type caller struct {
	kind string
	hook *webhook.Client
	url  text
	body *body // nil: the default body
}

// newCaller parses the templates. It calls note for each field, with its error or nil.
func newCaller(kind string, o *Contact, note func(field string, err error)) *caller {
	c := &caller{kind: kind}
	var err error
	c.url, err = parseText(o.URL)
	note(".url", err)
	if o.Body != "" {
		made, err := parseBody(o.Body)
		note(".body", err)
		c.body = &made
	}
	return c
}

// contact makes the call for a step, or for one of its contacts. A missing attribute of
// a template fails the attempt for good, and the next step has its turn.
func (c *caller) contact(ctx context.Context, t escalation.Try) error {
	t.DedupeKey = keyOfKind(c.kind, t.DedupeKey)
	rec := &sluice.Record{EventName: sluice.Delivery, New: item.Of(
		item.Map("escalation", t.Escalation.Item), item.Map("step", t.Step.Item), item.String("contact", t.Contact),
		item.Number("number", strconv.FormatInt(t.Number, 10)), item.Number("round", strconv.FormatInt(t.Round, 10)),
		item.Number("repeat", strconv.FormatInt(t.Repeat, 10)), item.String("dedupeKey", t.DedupeKey),
	)}
	target, err := c.url.append(nil, rec)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("the url: %w", err))
	}
	text := c.defaultBody(t)
	if c.body != nil {
		if text, err = c.body.make(nil, rec); err != nil {
			return sluice.Permanent(fmt.Errorf("the body: %w", err))
		}
	}
	return c.hook.Post(ctx, string(target), t.DedupeKey, text)
}

// keyOfKind adds the kind to a dedupe key. A receiver of several kinds needs it: two
// kinds may have escalations with the same id.
func keyOfKind(kind, key string) string { return url.QueryEscape(kind) + "/" + key }

func (c *caller) defaultBody(t escalation.Try) []byte {
	var b message.Body
	b.Str("kind", c.kind+".contact").Str("escalation", t.Escalation.ID).Str("ladder", t.Escalation.Ladder).Str("step", t.Step.ID)
	if t.Contact != "" {
		b.Str("contact", t.Contact)
	}
	b.Int("number", t.Number)
	unlessZero(&b, "round", t.Round)
	unlessZero(&b, "repeat", t.Repeat)
	return b.Str("dedupeKey", t.DedupeKey).Bytes()
}
