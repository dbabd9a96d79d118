package config

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/router"
)

// watchdog is one that needs a route.
type watchdog struct {
	kind  string
	queue *queue
	e     *escalation.Escalator
}

// watch has a watchdog's queue consumed.
func (b *builder) watch(kind string, q *queue, e *escalation.Escalator) {
	b.consume(q.name)
	b.watchdogs = append(b.watchdogs, watchdog{kind, q, e})
}

// watchName is the name of a watchdog's route, and the kind of its messages.
func watchName(kind string) string { return kind + ".watch" }

// addWatchdogs adds a route for each watchdog.
func (b *builder) addWatchdogs() error {
	var errs []error
	for _, w := range b.watchdogs {
		name := watchName(w.kind)
		err := b.app.Router.Add(b.c.place("routes"), name+"#"+string(sluice.Delivery), w.e.Watch, router.Name(name))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		b.app.Routes = append(b.app.Routes, BuiltRoute{
			Name: name, Kind: "escalate",
			Explain: func(_ context.Context, rec *sluice.Record) ([]Effect, error) {
				id, _ := rec.New.Lookup("escalation")
				return []Effect{{
					Does: "look whether escalation " + id.Str() + " stands still, and look again later",
					Sink: w.queue.sink, Target: w.queue.name, Key: id.Str(),
				}}, nil
			},
		})
	}
	return errors.Join(errs...)
}

// raise tells of escalations that stand still, in the log and by a message.
func (b *builder) raise(o Escalate, field string) (func(context.Context, escalation.Alarm) error, error) {
	var q *queue
	if o.Alarm != "" {
		var err error
		if q, err = b.sinks.queue(o.Alarm, field+".alarm"); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, a escalation.Alarm) error {
		a.DedupeKey = keyOfKind(o.Kind, a.DedupeKey)
		why := "its message, or the record of the attempt before it, is lost or late"
		if a.Err != nil {
			why = a.Err.Error()
		}
		what := "an escalation stands still"
		if a.Ended {
			what = "an escalation has ended, and nobody was called"
		}
		attrs := []any{"kind", o.Kind, "escalation", keyhash.Text(a.Escalation), "round", a.Round, "number", a.Number}
		if !a.Due.IsZero() {
			attrs = append(attrs, "due", a.Due)
		}
		b.s.Logger.ErrorContext(ctx, what, append(attrs, "why", why)...)
		if q == nil {
			return nil
		}
		m := sluice.Message{Body: string(alarmBody(o.Kind, a, why)), Attributes: map[string]sluice.MessageAttribute{"dedupeKey": sluice.StringAttribute(a.DedupeKey)}}
		if q.fifo {
			m.GroupID, m.DeduplicationID = asID(keyOfKind(o.Kind, a.Escalation)), asID(a.DedupeKey)
		}
		if err := q.send(ctx, m); err != nil {
			return fmt.Errorf("sending %s: %w", keyhash.Text(a.DedupeKey), err)
		}
		return nil
	}, nil
}

func alarmBody(kind string, a escalation.Alarm, why string) []byte {
	var b message.Body
	b.Str("kind", kind+".alarm").Str("escalation", a.Escalation).Int("round", a.Round).Int("number", a.Number)
	if !a.Due.IsZero() {
		b.Time("due", a.Due)
	}
	return b.Str("why", why).Str("dedupeKey", a.DedupeKey).Bytes()
}
