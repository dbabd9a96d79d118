package warehouse

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/dynamo"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/message"
)

// StatusEvent is one event of a build.
type StatusEvent struct {
	Key     string `dynamodbav:"key"` // pkg!env!version
	ID      string `dynamodbav:"event_id"`
	Type    string `dynamodbav:"event_type"`
	Package string `dynamodbav:"pkg"`
	Env     string `dynamodbav:"env"`
	Version string `dynamodbav:"version"`
	Locale  string `dynamodbav:"locale"`
	Message string `dynamodbav:"message"`
	Total   int64  `dynamodbav:"total"` // of locales; of a queued event
}

// onEvent takes an event into the status of its build.
func (w *Warehouse) onEvent(ctx context.Context, rec *sluice.Record) error {
	var e StatusEvent
	if err := rec.New.Decode(&e); err != nil {
		return sluice.Permanent(err)
	}
	want, err := join(e.Package, e.Env, e.Version)
	if err != nil {
		return err
	}
	if e.Key != want || e.ID == "" {
		return sluice.Permanent(fmt.Errorf("event %q of %q: want an event_id, and the key %q", e.ID, e.Key, want))
	}
	err = w.store.Write(ctx, dynamo.Update(w.table("status"), key(e.Key),
		"SET pkg = if_not_exists(pkg, :pkg), env = if_not_exists(env, :env), version = if_not_exists(version, :version)").
		Value(":pkg", e.Package).Value(":env", e.Env).Value(":version", e.Version))
	if err != nil {
		return err
	}
	switch e.Type {
	case queued:
		return w.onQueued(ctx, e)
	case failed:
		return unless(w.store.Write(ctx, dynamo.Update(w.table("status"), key(e.Key), "SET #error = :yes").
			If(notComplete).Name("#error", "error").Name("#complete", "complete").Value(":yes", true)))
	case complete:
		return w.count(ctx, e)
	}
	return nil
}

// notComplete is the condition of what a complete build no longer takes.
const notComplete = "attribute_not_exists(#complete) OR #complete <> :yes"

func (w *Warehouse) onQueued(ctx context.Context, e StatusEvent) error {
	if err := w.enqueue(ctx, e); err != nil {
		return err
	}
	if e.Total <= 0 {
		return nil
	}
	return unless(w.store.Write(ctx, dynamo.Update(w.table("status"), key(e.Key), "SET #total = :total").
		If("attribute_not_exists(#total) OR #total < :total").
		Name("#total", "total").Value(":total", e.Total)))
}

// count counts the locales that are complete, each once for ever: the marker
// has no expiry, and stands beside the counter.
func (w *Warehouse) count(ctx context.Context, e StatusEvent) error {
	marker, err := join(e.Package, e.Env, e.Version, e.Locale)
	if err != nil {
		return err
	}
	_, err = w.store.Once(ctx, dynamo.Unit{
		Marker: dynamo.Marker{Table: w.table("status_counter"), Key: "key", Item: item.Of(item.String("key", marker), item.Bool("marker", true))},
		Adds:   []dynamo.Add{{Table: w.table("status_counter"), Key: key(e.Key), By: map[string]int64{"count": 1}, Create: true}},
	})
	return err
}

// onCounted looks whether a build is complete. The counter and the total both
// lead here, so that whichever was written later sees the other.
func (w *Warehouse) onCounted(ctx context.Context, rec *sluice.Record) error {
	k := text(rec.Keys, "key")
	status, err := w.store.Get(ctx, w.table("status"), key(k))
	if err != nil {
		return err
	}
	counter, err := w.store.Get(ctx, w.table("status_counter"), key(k))
	if err != nil {
		return err
	}
	total, _ := number(status, "total")
	count, _ := number(counter, "count")
	if total <= 0 || count < total {
		return sluice.Skip("not complete")
	}
	return unless(w.store.Write(ctx, dynamo.Update(w.table("status"), key(k), "SET #complete = :yes, #error = :no").
		If("attribute_exists(#key) AND ("+notComplete+")").
		Name("#key", "key").Name("#complete", "complete").Name("#error", "error").Value(":yes", true).Value(":no", false)))
}

// announce says that a build has started, or is completed. A record handled
// again makes the same message, with the same dedupeKey.
func (w *Warehouse) announce(ctx context.Context, rec *sluice.Record) error {
	total, has := number(rec.New, "total")
	if _, had := rec.Old.Lookup("total"); has && !had {
		var b message.Body
		if err := w.tell(ctx, rec, "build_started", head(&b, "build_started", rec).Int("total", total).Bytes()); err != nil {
			return err
		}
	}
	if yes(rec.New, "complete") && !yes(rec.Old, "complete") {
		it, err := w.store.Get(ctx, w.table("package"), item.Of(item.String("name", text(rec.New, "pkg"))))
		if err != nil {
			return err
		}
		repository := []byte("{}")
		if v, ok := it.Lookup("repository"); ok {
			repository = v.AppendJSON(nil, item.SortedKeys())
		}
		var b message.Body
		return w.tell(ctx, rec, "build_completed", head(&b, "build_completed", rec).JSON("repository", repository).Bytes())
	}
	return nil
}

func head(b *message.Body, event string, rec *sluice.Record) *message.Body {
	return b.Str("event", event).Str("pkg", text(rec.New, "pkg")).Str("version", text(rec.New, "version")).Str("env", text(rec.New, "env"))
}

func (w *Warehouse) tell(ctx context.Context, rec *sluice.Record, event string, body []byte) error {
	return w.send(ctx, sluice.Message{
		Body:       string(body),
		Attributes: map[string]sluice.MessageAttribute{"dedupeKey": sluice.StringAttribute(event + ":" + text(rec.Keys, "key"))},
	})
}

func yes(it sluice.Item, name string) bool {
	v, ok := it.Lookup(name)
	return ok && v.Kind() == item.BOOL && v.Bool()
}
