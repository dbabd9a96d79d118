package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/router"
)

// Escalate calls one contact after another. Its messages have the kinds
// <kind>.attempt and <kind>.expire.
type Escalate struct {
	// start: new escalation; next: attempt; resume: changed escalation; contact:
	// messages.
	Do string `yaml:"do" is:"required,one of=start|next|resume|contact"`
	// Names of attributes (start).
	Ladder *Ladder `yaml:"ladder"`
	// Beginning of the messages' kinds. Default escalation.
	Kind string `yaml:"kind" default:"escalation"`
	// Sink of a standard queue for the messages (start).
	Queue string `yaml:"queue"`
	// Time from the last attempt to the end or the repeat. Default 5m.
	ExpireAfter Duration `yaml:"expireAfter" is:"min=1s" default:"5m"`
	// Times that the ladder is repeated. Default 0.
	Repeat int `yaml:"repeat" is:"min=0" default:"0"`
	// Sink of another standard queue, for the watchdog (start).
	Watch string `yaml:"watch"`
	// Delay after which the watchdog sends a step again, with an alarm. Default 15m.
	WatchAfter Duration `yaml:"watchAfter" is:"min=1m" default:"15m"`
	// Sink of a queue for alarms:
	// {"kind":"<kind>.alarm","escalation","round","number","due","why","dedupeKey"}.
	// The log has them, too.
	Alarm string `yaml:"alarm"`
	// How a contact route calls.
	Contact *Contact `yaml:"contact"`
}

const defaultExpiry = 5 * time.Minute

func (o *Escalate) check(c *Config, path string, r *Route) {
	d := c.doc
	events := []sluice.EventName{sluice.Insert, sluice.Modify}
	if o.Do == "contact" {
		events = []sluice.EventName{sluice.Delivery}
	} else if o.Contact != nil && o.Do != "" && !d.bad[path+".do"] {
		d.add(path+".contact", "it is for a route of contact")
	}
	c.only(path, r, events...)
	c.standard(path+".queue", o.Queue)
	c.standard(path+".watch", o.Watch)
	if o.Alarm != "" {
		c.sink(path+".alarm", o.Alarm, "sqs")
	}
	if o.Ladder != nil {
		o.Ladder.check(c, path+".ladder", r, o.Do)
	}
	if d.bad[path+"?"] || d.bad[path+".do"] || o.Do == "" {
		return
	}
	whole, _ := c.escalation(r)
	if o.Do == "contact" {
		o.checkContact(c, path, whole)
	}
	starts := c.starts()
	for _, f := range []struct {
		name    string
		missing bool
	}{{"ladder", whole.Ladder == nil}, {"queue", whole.Queue == ""}, {"watch", whole.Watch == ""}} {
		switch at := path + "." + f.name; {
		case !f.missing:
		case o.Do == "start" || len(starts) == 0:
			d.add(at, "it is missing; only other routes than those of start may leave it out, and take that of start")
		case len(starts) > 1:
			d.add(at, "it is missing, and %d routes of start could have it, want one", len(starts))
		}
	}
	if steps, watches := c.Sinks[whole.Queue].SQS, c.Sinks[whole.Watch].SQS; o.Watch+o.Queue != "" && steps != nil && watches != nil && steps.Queue == watches.Queue {
		c.note(path+".watch", fmt.Errorf("%s is the queue of the steps, too: what happens to one must not happen to both", watches.Queue))
	}
	for _, other := range starts {
		if other == r {
			break
		}
		if before, _ := c.escalation(other); o.Do == "start" && before.Kind == whole.Kind {
			c.note(path+".kind", fmt.Errorf("%q is the kind of another route of start, too, and messages could not tell the two apart: want another kind", whole.Kind))
		}
	}
}

func (o *Escalate) build(b *builder, path string, r *Route) (*built, error) {
	whole, of := b.c.escalation(r)
	table := b.c.tableOf(of, whole.Ladder.Table)
	if whole.Do == "start" {
		b.sinks.users = append(b.sinks.users, watchName(whole.Kind))
	}
	q, watch := b.sinks.queue(whole.Queue), b.sinks.queue(whole.Watch)
	var alarm *queue
	if whole.Alarm != "" {
		alarm = b.sinks.queue(whole.Alarm)
	}
	l := &ladder{Ladder: *whole.Ladder, table: table, kind: whole.Kind, store: b.sinks.use(path, table)}
	c := l.config(whole)
	c.Send, c.Fail, c.Now = q.send, l.fail, b.s.Fakes.Now
	c.Problem = func(ctx context.Context, e escalation.Escalation, err error) {
		b.s.Logger.ErrorContext(ctx, "passing over a part of an escalation", "kind", whole.Kind, "escalation", keyhash.Text(e.ID), "err", err)
	}
	c.Metrics, c.Kind = b.s.Metrics, whole.Kind
	c.Watch = escalation.Watchdog{Kind: watchName(whole.Kind), Send: watch.send, After: time.Duration(whole.WatchAfter), Alarm: b.raise(whole.Kind, alarm)}
	e, err := escalation.New(c)
	if err != nil {
		return nil, err
	}
	made := &built{late: true, handle: l.handler(whole.Do, e)}
	if whole.Do == "contact" {
		b.consume(q.name)
		if made, err = b.buildContact(l, c, whole); err != nil {
			return nil, b.c.wrong(path+".contact", err)
		}
	}
	if o.Queue != "" {
		made.sends = append(made.sends, sending{q, path + ".queue", []string{whole.Kind + ".attempt", whole.Kind + ".expire"}})
	}
	if o.Alarm != "" {
		made.sends = append(made.sends, sending{alarm, path + ".alarm", []string{whole.Kind + ".alarm"}})
	}
	switch whole.Do {
	case "contact":
		return made, nil
	case "start":
		b.consume(watch.name)
		b.watchdogs = append(b.watchdogs, func() error { return b.addWatchdog(whole.Kind, watch, e) })
		lacks := b.c.lacks(r, path)
		made.Lacks = func(context.Context, bool) error { return lacks }
	case "next":
		made.options = []router.Option{router.NeedsNew()}
	case "resume":
		made.options = []router.Option{router.NeedsBoth()}
	}
	made.Explain = func(ctx context.Context, rec *sluice.Record) ([]Effect, error) {
		// This escalator has fakes that add its effects to the list.
		var effects []Effect
		dry := c
		sending := func(to *queue) func(context.Context, sluice.Message) error {
			return func(_ context.Context, m sluice.Message) error {
				effects = append(effects, sent(to, m, m.Attributes["dedupeKey"].Value))
				return nil
			}
		}
		dry.Send, dry.Watch.Send = sending(q), sending(watch)
		row := func(id, does string) error {
			effects = append(effects, b.changed(does, table, l.key(id)))
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
		if err = l.handler(whole.Do, e)(ctx, rec); sluice.IsSkip(err) {
			err = nil
		}
		return effects, err
	}
	return made, nil
}

// lacks reports missing routes: a route with do: start needs next and resume.
func (c *Config) lacks(start *Route, path string) error {
	var errs []error
	for _, other := range []struct{ do, effect string }{
		{"next", "nothing follows the first step"},
		{"resume", "an escalation that is active again calls nobody"},
	} {
		if !slices.ContainsFunc(c.Routes, func(o Route) bool { return o.Escalate != nil && o.Escalate.Do == other.do }) {
			errs = append(errs, c.wrong(path, fmt.Errorf("route %s: no route has do: %s: %s; add one, unless it is in another program", start.Name, other.do, other.effect)))
		}
	}
	return errors.Join(errs...)
}

// handler returns the handler of a route's do.
func (l *ladder) handler(do string, e *escalation.Escalator) sluice.Handler {
	switch do {
	case "next":
		return e.Next
	case "resume":
		return l.own(e.Resume)
	}
	return l.own(e.Start)
}

// escalation returns the route's settings. Routes other than start take missing
// settings from the only start route. It also returns the route that has the ladder.
func (c *Config) escalation(r *Route) (o Escalate, of *Route) {
	o, of = *r.Escalate, r
	if starts := c.starts(); o.Do != "start" && len(starts) == 1 {
		s := starts[0].Escalate
		if o.Ladder == nil {
			o.Ladder, of = s.Ladder, starts[0]
		}
		o.Queue, o.Watch, o.Alarm = cmp.Or(o.Queue, s.Queue), cmp.Or(o.Watch, s.Watch), cmp.Or(o.Alarm, s.Alarm)
		o.Kind, o.Repeat = cmp.Or(o.Kind, s.Kind), cmp.Or(o.Repeat, s.Repeat)
		o.ExpireAfter, o.WatchAfter = cmp.Or(o.ExpireAfter, s.ExpireAfter), cmp.Or(o.WatchAfter, s.WatchAfter)
	}
	o.Kind, o.ExpireAfter = cmp.Or(o.Kind, "escalation"), cmp.Or(o.ExpireAfter, Duration(defaultExpiry))
	return o, of
}

// starts returns the routes that start escalations.
func (c *Config) starts() (all []*Route) {
	for i := range c.Routes {
		if e := c.Routes[i].Escalate; e != nil && e.Do == "start" {
			all = append(all, &c.Routes[i])
		}
	}
	return all
}
