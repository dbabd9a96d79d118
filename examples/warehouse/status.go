package warehouse

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

// StatusEvent is one event of a build.
type StatusEvent struct {
	Key     string `dynamodbav:"key" json:"key"`           // pkg!env!version
	ID      string `dynamodbav:"event_id" json:"event_id"` // see EventID
	Type    string `dynamodbav:"event_type" json:"event_type"`
	Package string `dynamodbav:"pkg" json:"pkg"`
	Env     string `dynamodbav:"env" json:"env"`
	Version string `dynamodbav:"version" json:"version"`
	Locale  string `dynamodbav:"locale" json:"locale,omitempty"`
	Error   bool   `dynamodbav:"error" json:"error,omitempty"`
	Message string `dynamodbav:"message" json:"message,omitempty"`
	Details any    `dynamodbav:"details" json:"details,omitempty"`
	Created string `dynamodbav:"create_date" json:"create_date,omitempty"`
	Total   int64  `dynamodbav:"total" json:"total,omitempty"` // of locales; of a queued event

	date date // Created, or the time of the id
}

// check looks whether the event is one, and reads its date.
func (e *StatusEvent) check() error {
	want, err := join(e.Package, e.Env, e.Version)
	if err != nil {
		return err
	}
	if e.Key != want {
		return sluice.Permanent(errors.New("the key of an event is not its pkg!env!version"))
	}
	id, err := ParseEventID(e.ID)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("event_id: %w", err))
	}
	if e.date, err = parseDate(e.Created); err == nil && e.Created == "" {
		e.date = dateOf(id)
	}
	return err
}

// onEvent takes an event into the status of its build.
func (w *Warehouse) onEvent(ctx context.Context, rec *sluice.Record) error {
	var e StatusEvent
	if err := rec.New.Decode(&e); err != nil {
		return sluice.Permanent(err)
	}
	if err := e.check(); err != nil {
		return err
	}
	total, err := w.addToStatus(ctx, e)
	if err != nil {
		return err
	}
	switch e.Type {
	case queued:
		return w.enqueue(ctx, e, total)
	case failed:
		return unless(w.d.Store.Write(ctx, dynamo.Update(w.table("status"), key(e.Key), "SET #error = :yes").
			If(notComplete).Name("#error", "error").Name("#complete", "complete").Value(":yes", true)))
	case complete:
		return w.count(ctx, e)
	}
	return nil
}

// addToStatus makes the status of the event's build, or takes the event's date
// and total into it. It returns the total that the status has then.
//
// The total is the smallest of the build's events. A build that is complete stays
// complete, so no other rule gives the same result in every order of events.
func (w *Warehouse) addToStatus(ctx context.Context, e StatusEvent) (total int64, err error) {
	err = w.change(ctx, "status", key(e.Key), []string{"key", "total", "create_date", "update_date"}, func(it sluice.Item) (map[string]any, error) {
		total, _ = kit.Number(it, "total")
		fields := map[string]any{"pkg": e.Package, "env": e.Env, "version": e.Version}
		if e.Type == queued {
			total = smallestTotal(total, e.Total)
		}
		if total > 0 {
			fields["total"] = total
		}
		spanOf(it).with(e.date).fields(fields)
		if it.Exists() && has(it, fields) {
			return nil, nil
		}
		return fields, nil
	})
	return total, err
}

// smallestTotal is the smaller one of two totals. One below 1 is none.
func smallestTotal(a, b int64) int64 {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// notComplete is the condition of what a complete build no longer takes.
const notComplete = "attribute_not_exists(#complete) OR #complete <> :yes"

// count counts the locales that are complete, each once for ever: the marker
// has no expiry, and stands beside the counter.
func (w *Warehouse) count(ctx context.Context, e StatusEvent) error {
	marker, err := join(e.Package, e.Env, e.Version, e.Locale)
	if err != nil {
		return err
	}
	_, err = w.d.Store.Once(ctx, dynamo.Unit{
		Marker: dynamo.Marker{Table: w.table("status_counter"), Key: "key", Item: item.Of(item.String("key", marker), item.Bool("marker", true))},
		Adds:   []dynamo.Add{{Table: w.table("status_counter"), Key: key(e.Key), By: map[string]int64{"count": 1}, Create: true}},
	})
	return err
}

// onCounted looks whether a build is complete. The counter and the total both
// lead here, so that whichever was written later sees the other.
func (w *Warehouse) onCounted(ctx context.Context, rec *sluice.Record) error {
	k := kit.Text(rec.Keys, "key")
	status, err := w.d.Store.Get(ctx, w.table("status"), key(k))
	if err != nil {
		return err
	}
	counter, err := w.d.Store.Get(ctx, w.table("status_counter"), key(k))
	if err != nil {
		return err
	}
	if err := w.nameCounter(ctx, counter); err != nil {
		return err
	}
	total, _ := kit.Number(status, "total")
	count, _ := kit.Number(counter, "count")
	if total <= 0 || count < total {
		return sluice.Skip("not complete")
	}
	return unless(w.d.Store.Write(ctx, dynamo.Update(w.table("status"), key(k), "SET #complete = :yes, #error = :no").
		If("attribute_exists(#key) AND attribute_not_exists(#complete) OR attribute_exists(#key) AND #complete <> :yes").
		Name("#key", "key").Name("#complete", "complete").Name("#error", "error").Value(":yes", true).Value(":no", false)))
}

// nameCounter says in a counter what it counts: that is made by counting, which
// only adds.
func (w *Warehouse) nameCounter(ctx context.Context, counter sluice.Item) error {
	k := kit.Text(counter, "key")
	parts := strings.Split(k, separator)
	if _, named := counter.Lookup("pkg"); named || len(parts) != 3 {
		return nil
	}
	op := kit.Set(dynamo.Update(w.table("status_counter"), key(k), ""), map[string]any{"pkg": parts[0], "env": parts[1], "version": parts[2]})
	return unless(w.d.Store.Write(ctx, op.If("attribute_exists(#key)").Name("#key", "key")))
}

// announce says that a build has started, or is completed. A record handled
// again makes the same message, with the same dedupeKey.
func (w *Warehouse) announce(ctx context.Context, rec *sluice.Record) error {
	total, has := kit.Number(rec.New, "total")
	if _, had := rec.Old.Lookup("total"); has && !had {
		var b message.Body
		if err := w.tell(ctx, rec, "build_started", head(&b, "build_started", rec).Int("total", total).Bytes()); err != nil {
			return err
		}
	}
	if yes(rec.New, "complete") && !yes(rec.Old, "complete") {
		it, err := w.d.Store.Get(ctx, w.table("package"), item.Of(item.String("name", kit.Text(rec.New, "pkg"))))
		if err != nil {
			return err
		}
		repository := []byte("{}")
		if v, ok := it.Lookup("repository"); ok {
			repository = v.AppendJSON(nil, item.JSON{SortedKeys: true})
		}
		var b message.Body
		return w.tell(ctx, rec, "build_completed", head(&b, "build_completed", rec).JSON("repository", repository).Bytes())
	}
	return nil
}

func head(b *message.Body, event string, rec *sluice.Record) *message.Body {
	return b.Str("event", event).Str("pkg", kit.Text(rec.New, "pkg")).Str("version", kit.Text(rec.New, "version")).Str("env", kit.Text(rec.New, "env"))
}

func (w *Warehouse) tell(ctx context.Context, rec *sluice.Record, event string, body []byte) error {
	return w.d.Send(ctx, kit.Message(body, event+":"+kit.Text(rec.Keys, "key")))
}

func yes(it sluice.Item, name string) bool {
	v, ok := it.Lookup(name)
	return ok && v.Kind() == item.BOOL && v.Bool()
}
