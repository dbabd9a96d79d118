package config

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/internal/keyhash"
)

// watchName is the name of a watchdog's route, and the kind of its messages.
func watchName(kind string) string { return kind + ".watch" }

// addWatchdog adds the route of a watchdog.
func (b *builder) addWatchdog(kind string, q *queue, e *escalation.Escalator) error {
	return b.addOwn(e.Watch, BuiltRoute{
		Name: watchName(kind), Kind: "escalate",
		Explain: func(_ context.Context, rec *sluice.Record) ([]Effect, error) {
			id, _ := rec.New.Lookup("escalation")
			return []Effect{{
				Does: "look whether escalation " + id.Str() + " stands still, and look again later",
				Sink: q.sink, Target: q.name, Key: id.Str(),
			}}, nil
		},
	})
}

// raise reports an escalation that stands still in the log, and by a message to q if q
// is set.
func (b *builder) raise(kind string, q *queue) func(context.Context, escalation.Alarm) error {
	return func(ctx context.Context, a escalation.Alarm) error {
		a.DedupeKey = keyOfKind(kind, a.DedupeKey)
		why := "its message, or the record of the attempt before it, is lost or late"
		if a.Err != nil {
			why = a.Err.Error()
		}
		what := "an escalation stands still"
		if a.Ended {
			what = "an escalation has ended, and nobody was called"
		}
		attrs := []any{"kind", kind, "escalation", keyhash.Text(a.Escalation), "round", a.Round, "number", a.Number}
		if !a.Due.IsZero() {
			attrs = append(attrs, "due", a.Due)
		}
		b.s.Logger.ErrorContext(ctx, what, append(attrs, "why", why)...)
		if q == nil {
			return nil
		}
		m := sluice.Message{Body: string(alarmBody(kind, a, why)), Attributes: map[string]sluice.MessageAttribute{"dedupeKey": {Value: a.DedupeKey}}}
		if q.fifo {
			m.GroupID, m.DeduplicationID = asID(keyOfKind(kind, a.Escalation)), asID(a.DedupeKey)
		}
		if err := q.send(ctx, m); err != nil {
			return fmt.Errorf("sending %s: %w", keyhash.Text(a.DedupeKey), err)
		}
		return nil
	}
}

func alarmBody(kind string, a escalation.Alarm, why string) []byte {
	var b message.Body
	b.Str("kind", kind+".alarm").Str("escalation", a.Escalation).Int("round", a.Round).Int("number", a.Number)
	if !a.Due.IsZero() {
		b.Time("due", a.Due)
	}
	return b.Str("why", why).Str("dedupeKey", a.DedupeKey).Bytes()
}
