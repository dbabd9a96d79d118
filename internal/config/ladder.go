package config

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/item"
)

// Ladder names attributes. Escalations, steps and attempts are all in one table.
type Ladder struct {
	// Table of all three. Default: the only one of source.
	Table string `yaml:"table"`
	// Key of the escalation: attribute to template; {id} is its id.
	Key map[string]string `yaml:"key" is:"required"`
	// Partition of the steps: attribute to template; {ladder} is the ladder.
	Steps map[string]string `yaml:"steps" is:"required"`
	// Attributes of escalations.
	Escalation EscalationNames `yaml:"escalation" is:"required"`
	// Attributes of steps.
	Step StepNames `yaml:"step" is:"required"`
	// Attributes of attempts.
	Attempt AttemptNames `yaml:"attempt" is:"required"`
}

// EscalationNames are attributes of an escalation. Active and failed are values of
// its status.
type EscalationNames struct {
	// Id.
	ID string `yaml:"id" is:"required"`
	// Ladder: partition of the steps.
	Ladder string `yaml:"ladder" is:"required"`
	// Start, in RFC 3339.
	Started string `yaml:"started" is:"required"`
	// Status.
	Status string `yaml:"status" is:"required"`
	// Status while the escalation goes on.
	Active string `yaml:"active" is:"required"`
	// Status that Sluice sets at the end. Default failed.
	Failed string `yaml:"failed" default:"failed"`
	// Reason: no_steps, bad_steps, no_response or nobody_called. Default: not
	// written.
	Reason string `yaml:"reason"`
	// Round, a number that Sluice raises. Default round.
	Round string `yaml:"round" default:"round"`
	// Start of a later round; Sluice writes it. Default roundStarted.
	RoundStarted string `yaml:"roundStarted" default:"roundStarted"`
	// Time (RFC 3339) before which nobody is called.
	SnoozedUntil string `yaml:"snoozedUntil"`
	// Order of the step at which a round begins.
	ResumeAt string `yaml:"resumeAt"`
	// Number that wins over the route's repeat.
	Repeat string `yaml:"repeat"`
}

// StepNames are attributes of a step.
type StepNames struct {
	// Attribute whose value type marks steps. Default: all items are steps.
	TypeAttribute string `yaml:"typeAttribute"`
	// Value of typeAttribute in a step.
	Type string `yaml:"type"`
	// BOOL that a step needs.
	Enabled string `yaml:"enabled"`
	// Id, unique in the ladder.
	ID string `yaml:"id" is:"required"`
	// Place, a whole number.
	Order string `yaml:"order" is:"required"`
	// Seconds before the step is tried.
	WaitSeconds string `yaml:"waitSeconds" is:"required"`
	// List (L or SS) of contacts to call at the same time.
	Contacts string `yaml:"contacts"`
}

// AttemptNames are the key and the attributes of an attempt.
type AttemptNames struct {
	// Key: attribute to template of {id} (escalation), {round} and {number}.
	Key map[string]string `yaml:"key" is:"required"`
	// Attributes that a contact route adds: {entityType: attempt}.
	Set map[string]string `yaml:"set"`
	// Id of the escalation.
	Escalation string `yaml:"escalation" is:"required"`
	// Number, from 0.
	Number string `yaml:"number" is:"required"`
	// Order of the step.
	Order string `yaml:"order" is:"required"`
	// Id of the step.
	StepID string `yaml:"stepId" is:"required"`
	// Time, in RFC 3339.
	At string `yaml:"at" is:"required"`
	// Round; 0 if missing. Default round.
	Round string `yaml:"round" default:"round"`
	// Number of the repeat; 0 if missing. Default repeat.
	Repeat string `yaml:"repeat" default:"repeat"`
	// Outcome: contacted, failed or skipped. Default outcome.
	Outcome string `yaml:"outcome" default:"outcome"`
	// Why a step failed or was skipped. Default error.
	Error string `yaml:"error" default:"error"`
}

// ladder reads escalations and steps, and writes the status of escalations.
type ladder struct {
	Ladder
	table, kind string
	store       Tables
}

// check notes the mistakes of the ladder. do is its route's.
func (l *Ladder) check(c *Config, path string, r *Route, do string) {
	d := c.doc
	c.ownTable(path+".table", r, l.Table, "the escalations")
	if (l.Step.TypeAttribute == "") != (l.Step.Type == "") {
		d.add(path+".step", "typeAttribute and type go together, and one of them is missing")
	}
	if d.badBelow(path) || d.bad[path+"?"] {
		return
	}
	e, at := l.Escalation, l.Attempt
	note := func(format string, args ...any) { c.note(path, fmt.Errorf(format, args...)) }
	for _, one := range []struct {
		field, want string
		of          map[string]string
	}{
		{"key", "{id}", l.Key}, {"steps", "{ladder}", l.Steps}, {"attempt.key", "{id}", at.Key}, {"attempt.key", "{round}", at.Key}, {"attempt.key", "{number}", at.Key},
	} {
		if !strings.Contains(strings.Join(slices.Collect(maps.Values(one.of)), " "), one.want) {
			note("%s has %s nowhere: it would be the same item always", one.field, one.want)
		}
	}
	if len(l.Steps) != 1 {
		note("steps has %d attributes, want the partition key's alone", len(l.Steps))
	}
	for _, one := range (Texts{{"status", e.Status}, {"reason", e.Reason}, {"round", e.Round}, {"roundStarted", e.RoundStarted}}) {
		if strings.Contains(one.Value, ".") {
			note("escalation.%s is %q, within a map: want an attribute, which is written", one.Name, one.Value)
		}
	}
	if by, isKey := at.Key[at.Escalation]; isKey && by != "{id}" {
		note("attempt.key has %q for %s, the attribute of attempt.escalation: want {%s: '{id}'}, since the escalation is found by it", by, at.Escalation, at.Escalation)
	}
	for _, one := range at.names() {
		if _, isKey := at.Key[one.Value]; isKey && one.Value != "" {
			note("attempt.%s is %q, an attribute of attempt.key: want an attribute of its own", one.Name, one.Value)
		}
	}
	if l.failed() == e.Active {
		note("escalation.failed and escalation.active are both %q: an escalation without steps would never end", e.Active)
	}
	if e.Reason == e.Status {
		note("escalation.reason and escalation.status are both %q: want two attributes", e.Status)
	}
	if id := e.ID; (do == "start" || do == "resume") && l.Key[id] != "{id}" {
		note("key has %q for %s, the attribute of escalation.id: want {%s: '{id}'}, since a record's id is the whole of that key attribute", l.Key[id], id, id)
	}
}

// names returns the attributes of an attempt outside its key.
func (at *AttemptNames) names() Texts {
	return Texts{
		{"number", at.Number}, {"order", at.Order}, {"stepId", at.StepID}, {"at", at.At}, {"round", at.Round}, {"repeat", at.Repeat}, {"outcome", at.Outcome}, {"error", at.Error},
	}
}

// config returns an escalation's configuration without queues.
func (l *ladder) config(o Escalate) escalation.Config {
	at := l.Attempt
	return escalation.Config{
		Escalation: l.escalation(),
		Step:       escalation.StepAttributes(l.Step),
		Attempt: escalation.AttemptAttributes{
			Escalation: at.Escalation, Number: at.Number, Order: at.Order, StepID: at.StepID, At: at.At, Round: at.Round, Repeat: at.Repeat, Outcome: at.Outcome,
		},
		Table: l.table,
		Key:   l.key,
		Get: func(ctx context.Context, id string) (sluice.Item, error) {
			return l.store.Get(ctx, l.table, l.key(id))
		},
		GetAttempt: func(ctx context.Context, id string, round, number int64) (sluice.Item, error) {
			return l.store.Get(ctx, l.table, l.attemptKey(id, round, number))
		},
		Write:       l.store.Write,
		Query:       l.steps,
		StepBody:    l.stepBody,
		ExpiryBody:  l.expiryBody,
		ExpireAfter: time.Duration(o.ExpireAfter),
		Repeat:      int64(o.Repeat),
	}
}

func (l *ladder) escalation() escalation.EscalationAttributes {
	e := l.Escalation
	return escalation.EscalationAttributes{
		ID: e.ID, Ladder: e.Ladder, Started: e.Started, Status: e.Status, Active: e.Active,
		Round: e.Round, RoundStarted: e.RoundStarted, SnoozedUntil: e.SnoozedUntil, ResumeAt: e.ResumeAt, Repeat: e.Repeat,
	}
}

// own fails a record for good if its item's key is not the ladder's key for its id. A
// read by that key would find nothing, and the escalation would never begin.
func (l *ladder) own(start sluice.Handler) sluice.Handler {
	return func(ctx context.Context, rec *sluice.Record) error {
		if rec.Table != l.table {
			return sluice.Permanent(fmt.Errorf("it is of table %s, and escalations are read in table %s (ladder.table)", rec.Table, l.table))
		}
		id, ok := rec.Keys.Lookup(l.Escalation.ID)
		if ok && id.Kind() == item.S && !l.key(id.Str()).Equal(rec.Keys) {
			return sluice.Permanent(fmt.Errorf("its key %s differs from ladder.key, by which Sluice reads its escalation", keyhash.Item(rec.Keys)))
		}
		return start(ctx, rec)
	}
}

// key returns the key of an escalation.
func (l *ladder) key(id string) sluice.Item { return keyOf(l.Key, "{id}", id) }

func (l *ladder) attemptKey(id string, round, number int64) sluice.Item {
	return keyOf(l.Attempt.Key, "{id}", id, "{round}", strconv.FormatInt(round, 10), "{number}", strconv.FormatInt(number, 10))
}

// keyOf makes a key from templates.
func keyOf(templates map[string]string, oldnew ...string) sluice.Item {
	fill := strings.NewReplacer(oldnew...)
	var attrs []item.Attribute
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		attrs = append(attrs, item.String(name, fill.Replace(templates[name])))
	}
	return item.Of(attrs...)
}

func (l *ladder) steps(ctx context.Context, partition string) ([]sluice.Item, error) {
	var items []sluice.Item
	for name, text := range l.Steps { // Steps has one entry
		q := dynamo.Query{Table: l.table, Partition: item.String(name, strings.ReplaceAll(text, "{ladder}", partition))}
		for it, err := range dynamo.All(ctx, l.store.Query, q) {
			if err != nil {
				return nil, err
			}
			items = append(items, it)
		}
	}
	return items, nil
}

func (l *Ladder) failed() string { return cmp.Or(l.Escalation.Failed, "failed") }

// fail ends an escalation if it is still active and in the same round.
func (l *ladder) fail(ctx context.Context, e escalation.Escalation, reason string) error {
	op := dynamo.Update(l.table, l.key(e.ID), "SET #s = :failed")
	if l.Escalation.Reason != "" {
		op = dynamo.Update(l.table, l.key(e.ID), "SET #s = :failed, #r = :reason").Name("#r", l.Escalation.Reason).Value(":reason", reason)
	}
	op = l.escalation().StillIn(e.Item, op).Name("#s", l.Escalation.Status).Value(":failed", l.failed())
	err := l.store.Write(ctx, op)
	if dynamo.IsCondition(err) {
		return nil // the escalation is over
	}
	return err
}

func (l *ladder) stepBody(t escalation.Try) []byte {
	var b message.Body
	b.Str("kind", l.kind+".attempt").Str("escalation", t.Escalation.ID).Str("ladder", t.Escalation.Ladder).
		Str("step", t.Step.ID).Int("order", t.Step.Order).Int("number", t.Number)
	unlessZero(&b, "round", t.Round)
	unlessZero(&b, "repeat", t.Repeat)
	return b.Time("notBefore", t.NotBefore).Str("dedupeKey", t.DedupeKey).Bytes()
}

func (l *ladder) expiryBody(x escalation.Expiry) []byte {
	var b message.Body
	b.Str("kind", l.kind+".expire").Str("escalation", x.Escalation.ID).Str("ladder", x.Escalation.Ladder)
	unlessZero(&b, "round", x.Round)
	return b.Time("notBefore", x.NotBefore).Str("dedupeKey", x.DedupeKey).Bytes()
}

func unlessZero(b *message.Body, name string, n int64) {
	if n != 0 {
		b.Int(name, n)
	}
}
