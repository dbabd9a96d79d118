package config

import (
	"cmp"
	"context"
	"errors"
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
	"github.com/sluicehq/sluice/router"
)

const defaultExpiry = 5 * time.Minute

func (b *builder) escalate(rt *Route, field string) (*built, error) {
	o, of, err := b.escalation(rt, field)
	if err != nil {
		return nil, err
	}
	table, err := b.tableOf(of, o.Ladder.Table)
	if err != nil {
		return nil, b.c.wrong(field+".ladder.table", err)
	}
	if o.Do == "start" {
		b.sinks.users = append(b.sinks.users, watchName(o.Kind))
	}
	q, err := b.delaying(o.Queue, field+".queue")
	if err != nil {
		return nil, err
	}
	watch, err := b.delaying(o.Watch, field+".watch")
	if err != nil {
		return nil, err
	}
	if watch.name == q.name {
		return nil, b.c.wrong(field+".watch", fmt.Errorf("%s is the queue of the steps, too: what happens to one must not happen to both", watch.name))
	}
	l := &ladder{Ladder: *o.Ladder, table: table, kind: o.Kind, store: b.sinks.use(field, table)}
	c, err := l.config(o)
	if err != nil {
		return nil, b.c.wrong(field+".ladder", err)
	}
	c.Send, c.Fail, c.Now = q.send, l.fail, b.s.Fakes.Now
	c.Problem = func(ctx context.Context, e escalation.Escalation, err error) {
		b.s.Logger.ErrorContext(ctx, "passing over a part of an escalation", "kind", o.Kind, "escalation", keyhash.Text(e.ID), "err", err)
	}
	c.Metrics, c.Kind = b.s.Metrics, o.Kind
	raise, err := b.raise(o, field)
	if err != nil {
		return nil, err
	}
	c.Watch = escalation.Watchdog{Kind: watchName(o.Kind), Send: watch.send, After: time.Duration(o.WatchAfter), Alarm: raise}
	e, err := escalation.New(c)
	if err != nil {
		return nil, b.c.wrong(field, err)
	}
	if o.Do == "start" {
		if slices.ContainsFunc(b.watchdogs, func(w watchdog) bool { return w.kind == o.Kind }) {
			return nil, b.c.wrong(field+".kind", fmt.Errorf("%q is the kind of another route of start, too, and messages could not tell the two apart: want another kind", o.Kind))
		}
		b.watch(o.Kind, watch, e)
	}
	if o.Do == "start" || o.Do == "resume" {
		if err := l.startable(); err != nil {
			return nil, b.c.wrong(field+".ladder", err)
		}
	}
	if o.Do == "contact" {
		b.consume(q.name)
		return b.contact(l, c, o, field)
	}
	if o.Contact != nil {
		return nil, b.c.wrong(field+".contact", fmt.Errorf("it is for a route of contact, not of %s", o.Do))
	}
	made := &built{late: true, handle: l.handler(o.Do, e)}
	made.Warning = b.c.lacks(rt, field)
	switch o.Do {
	case "next":
		made.options = []router.Option{router.NeedsNew()}
	case "resume":
		made.options = []router.Option{router.NeedsBoth()}
	}
	made.Explain = func(ctx context.Context, rec *sluice.Record) ([]Effect, error) {
		// What it would do, it does here to the list of effects.
		var effects []Effect
		dry := c
		dry.Send = func(_ context.Context, m sluice.Message) error {
			effects = append(effects, sent(q, m, m.Attributes["dedupeKey"].Value))
			return nil
		}
		dry.Watch.Send = func(_ context.Context, m sluice.Message) error {
			effects = append(effects, sent(watch, m, m.Attributes["dedupeKey"].Value))
			return nil
		}
		row := func(id, does string) error {
			effects = append(effects, Effect{Does: does, Sink: b.sinks.storeName, Target: table, Key: string(l.key(id).AppendJSON(nil))})
			return nil
		}
		dry.Fail = func(_ context.Context, e escalation.Escalation, reason string) error {
			return row(e.ID, fmt.Sprintf("set %s of escalation %s to %s (%s), if it is still %s", l.Escalation.Status, e.ID, l.failed(), reason, l.Escalation.Active))
		}
		dry.Write = func(context.Context, dynamo.Op) error {
			id, _ := rec.Keys.Lookup(l.Escalation.ID)
			return row(id.Str(), fmt.Sprintf("begin a new round of escalation %s, if it has not begun yet", id.Str()))
		}
		e, err := escalation.New(dry)
		if err != nil {
			return nil, err
		}
		if err = l.handler(o.Do, e)(ctx, rec); sluice.IsSkip(err) {
			err = nil
		}
		return effects, err
	}
	return made, nil
}

// lacks says which routes are not beside one of start.
func (c *Config) lacks(rt *Route, field string) error {
	var errs []error
	for _, other := range []struct{ do, effect string }{
		{"next", "nothing follows the first step"},
		{"resume", "an escalation that is active again calls nobody"},
	} {
		if rt.Escalate.Do == "start" && !slices.ContainsFunc(c.Routes, func(o Route) bool { return o.Escalate != nil && o.Escalate.Do == other.do }) {
			errs = append(errs, c.wrong(field, fmt.Errorf("route %s: no route has do: %s: %s; add one, unless it is in another program", rt.name(), other.do, other.effect)))
		}
	}
	return errors.Join(errs...)
}

// handler is what a route does.
func (l *ladder) handler(do string, e *escalation.Escalator) sluice.Handler {
	switch do {
	case "next":
		return e.Next
	case "resume":
		return l.own(e.Resume)
	}
	return l.own(e.Start)
}

// escalation is what the route says, and for others than start what the only one
// of start says where they do not. It also returns the route that has the ladder.
func (b *builder) escalation(rt *Route, field string) (Escalate, *Route, error) {
	o, of := *rt.Escalate, rt
	if !slices.Contains([]string{"start", "next", "resume", "contact"}, o.Do) {
		return o, nil, b.c.wrong(field+".do", fmt.Errorf("%q is none of start, next, resume and contact", o.Do))
	}
	var starts []*Route
	for i := range b.c.Routes {
		if e := b.c.Routes[i].Escalate; e != nil && e.Do == "start" {
			starts = append(starts, &b.c.Routes[i])
		}
	}
	if o.Do != "start" && len(starts) == 1 {
		s := starts[0].Escalate
		if o.Ladder == nil {
			o.Ladder, of = s.Ladder, starts[0]
		}
		o.Queue, o.Watch, o.Alarm = cmp.Or(o.Queue, s.Queue), cmp.Or(o.Watch, s.Watch), cmp.Or(o.Alarm, s.Alarm)
		o.Kind, o.Repeat = cmp.Or(o.Kind, s.Kind), cmp.Or(o.Repeat, s.Repeat)
		o.ExpireAfter, o.WatchAfter = cmp.Or(o.ExpireAfter, s.ExpireAfter), cmp.Or(o.WatchAfter, s.WatchAfter)
	}
	if o.Ladder == nil {
		return o, nil, b.c.wrong(field+".ladder", fmt.Errorf("it is missing, and %d routes of start could have it, want one", len(starts)))
	}
	o.Kind, o.ExpireAfter = cmp.Or(o.Kind, "escalation"), cmp.Or(o.ExpireAfter, Duration(defaultExpiry))
	return o, of, nil
}

// ladder reads escalations and their steps, and writes what becomes of them.
type ladder struct {
	Ladder
	table, kind string
	store       Tables
}

// config is that of an escalation, but for what it sends.
func (l *ladder) config(o Escalate) (escalation.Config, error) {
	if err := errors.Join(
		templates("key", l.Key, "{id}"), templates("steps", l.Steps, "{ladder}"),
		templates("attempt.key", l.Attempt.Key, "{id}"), templates("attempt.key", l.Attempt.Key, "{round}"), templates("attempt.key", l.Attempt.Key, "{number}"),
	); err != nil {
		return escalation.Config{}, err
	}
	if len(l.Steps) != 1 {
		return escalation.Config{}, fmt.Errorf("steps has %d attributes, want the partition key's alone", len(l.Steps))
	}
	e, at := l.Escalation, l.Attempt
	for field, name := range map[string]string{"status": e.Status, "reason": e.Reason, "round": e.Round, "roundStarted": e.RoundStarted} {
		if strings.Contains(name, ".") {
			return escalation.Config{}, fmt.Errorf("escalation.%s is %q, within a map: want an attribute, which is written", field, name)
		}
	}
	if by, isKey := at.Key[at.Escalation]; isKey && by != "{id}" {
		return escalation.Config{}, fmt.Errorf("attempt.key has %q for %s, the attribute of attempt.escalation: want {%s: '{id}'}, since the escalation is found by it", by, at.Escalation, at.Escalation)
	}
	for field, name := range map[string]string{"number": at.Number, "order": at.Order, "stepId": at.StepID, "at": at.At, "round": at.Round, "repeat": at.Repeat, "outcome": at.Outcome, "error": at.Error} {
		if _, isKey := at.Key[name]; isKey && name != "" {
			return escalation.Config{}, fmt.Errorf("attempt.%s is %q, an attribute of attempt.key: want an attribute of its own", field, name)
		}
	}
	if l.failed() == e.Active {
		return escalation.Config{}, fmt.Errorf("escalation.failed and escalation.active are both %q: an escalation without steps would never end", e.Active)
	}
	if e.Reason == e.Status {
		return escalation.Config{}, fmt.Errorf("escalation.reason and escalation.status are both %q: want two attributes", e.Status)
	}
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
	}, nil
}

func (l *ladder) escalation() escalation.EscalationAttributes {
	e := l.Escalation
	return escalation.EscalationAttributes{
		ID: e.ID, Ladder: e.Ladder, Started: e.Started, Status: e.Status, Active: e.Active,
		Round: e.Round, RoundStarted: e.RoundStarted, SnoozedUntil: e.SnoozedUntil, ResumeAt: e.ResumeAt, Repeat: e.Repeat,
	}
}

// templates looks whether one of the values has what differs from item to item.
func templates(field string, of map[string]string, want string) error {
	if len(of) == 0 {
		return fmt.Errorf("%s is missing: attribute to template, such as {PK: '%s'}", field, want)
	}
	for _, text := range of {
		if strings.Contains(text, want) {
			return nil
		}
	}
	return fmt.Errorf("%s has %s nowhere: it would be the same item always", field, want)
}

// startable says why the key of no record leads back to its escalation.
func (l *ladder) startable() error {
	if id := l.Escalation.ID; l.Key[id] != "{id}" {
		return fmt.Errorf("key has %q for %s, the attribute of escalation.id: want {%s: '{id}'}, since a record's id is the whole of that key attribute", l.Key[id], id, id)
	}
	return nil
}

// own fails a record for good whose item is not where its escalation would be
// read: the read would find nothing, and the escalation would never begin.
func (l *ladder) own(start sluice.Handler) sluice.Handler {
	return func(ctx context.Context, rec *sluice.Record) error {
		if rec.Table != l.table {
			return sluice.Permanent(fmt.Errorf("it is of table %s, and escalations are read in table %s (ladder.table)", rec.Table, l.table))
		}
		id, ok := rec.Keys.Lookup(l.Escalation.ID)
		if ok && id.Kind() == item.S && !l.key(id.Str()).Equal(rec.Keys) {
			return sluice.Permanent(fmt.Errorf("its key %s is not the one that ladder.key makes, by which its escalation is read", keyhash.Item(rec.Keys)))
		}
		return start(ctx, rec)
	}
}

// key is that of an escalation.
func (l *ladder) key(id string) sluice.Item { return keyOf(l.Key, "{id}", id) }

func (l *ladder) attemptKey(id string, round, number int64) sluice.Item {
	return keyOf(l.Attempt.Key, "{id}", id, "{round}", strconv.FormatInt(round, 10), "{number}", strconv.FormatInt(number, 10))
}

// keyOf makes a key of templates.
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
	for name, text := range l.Steps { // which is one
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

func (l *ladder) failed() string { return cmp.Or(l.Escalation.Failed, "failed") }

// fail ends an escalation that is still active, and in the same round.
func (l *ladder) fail(ctx context.Context, e escalation.Escalation, reason string) error {
	op := dynamo.Update(l.table, l.key(e.ID), "SET #s = :failed")
	if l.Escalation.Reason != "" {
		op = dynamo.Update(l.table, l.key(e.ID), "SET #s = :failed, #r = :reason").Name("#r", l.Escalation.Reason).Value(":reason", reason)
	}
	op = l.escalation().StillIn(e.Item, op).Name("#s", l.Escalation.Status).Value(":failed", l.failed())
	err := l.store.Write(ctx, op)
	if dynamo.IsCondition(err) {
		return nil // it is over by now
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
