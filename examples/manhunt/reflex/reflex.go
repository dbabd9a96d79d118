// Package reflex opens searches for incidents: an incident has stages, each
// with a contact and a limit; who does not answer within the limit of a stage is
// joined by the contact of the next. The first answer acknowledges the incident
// and ends the other searches.
//
// It stands on the parts that Manhunt stands on, in the same program: its own
// table and its stream, Manhunt's table, and a queue with its timers and with
// what Manhunt tells about searches.
package reflex

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
)

// Deps are the dependencies of the routes.
type Deps struct {
	Store   manhunt.Store
	Table   string // default DefaultTable
	Manhunt string // table of searches (default manhunt.DefaultTable)

	// Send makes the timers' messages durable, in a queue that is consumed by
	// the same routes.
	Send     func(ctx context.Context, m sluice.Message) error
	MaxDelay time.Duration    // of a message; a later one hops (default 15 min, the limit of SQS)
	Now      func() time.Time // default time.Now
}

// DefaultTable is the table's name where no other is given.
const DefaultTable = "reflex"

// app is shared by the handlers.
type app struct {
	d        Deps
	searches *manhunt.Table
}

// Register adds Reflex's routes to a router with manhunt.TypeFrom. They read the incident before they act, and
// change it on condition that it is still as it was read: so they take records
// and messages that come twice, late, or from the dead letters.
func Register(r *router.Router, d Deps) error {
	if d.Store == nil || d.Send == nil {
		return errors.New("reflex: Deps.Store and Deps.Send: want both")
	}
	d.Table = cmp.Or(d.Table, DefaultTable)
	d.Manhunt = cmp.Or(d.Manhunt, manhunt.DefaultTable)
	d.MaxDelay = cmp.Or(d.MaxDelay, message.MaxDelay)
	if d.Now == nil {
		d.Now = time.Now
	}
	a := &app{d: d, searches: manhunt.NewTable(d.Store, d.Manhunt)}
	hop := router.Use(message.Hop(d.Send, message.Options{MaxDelay: d.MaxDelay, Now: d.Now}))

	r.Handle("incident#INSERT", a.begin, router.Name("first stage"), router.Redrive())
	r.Handle("incident#MODIFY", a.begin, router.Name("next stage"), router.Changed("stage"), router.When(isOpen), router.Redrive())
	r.Handle("incident#MODIFY", a.begin, router.Name("mended"), router.When(isMended), router.NeedsBoth(), router.Redrive())
	r.Handle("incident#MODIFY", a.end, router.Name("end searches"), router.When(hasClosed), router.NeedsBoth(), router.Redrive())
	r.Handle("incident#REMOVE", a.end, router.Name("end searches of a removed incident"), router.Redrive())
	r.Handle("reflex.stage#MESSAGE", a.limit, router.Name("stage limit"), hop)
	r.Handle("manhunt.resolved#MESSAGE", a.resolved, router.Name("search resolved"))
	return nil
}

func isOpen(rec *sluice.Record) bool { return text(rec.New, "status") == open }

// isMended lets pass an incident that was malformed, and is open again.
func isMended(rec *sluice.Record) bool { return text(rec.Old, "status") == failed && isOpen(rec) }

func hasClosed(rec *sluice.Record) bool { return text(rec.Old, "status") == open && !isOpen(rec) }

// begin opens the search of a stage and sets the timer of its end. Both are
// those of the record, also when the incident has come to a later stage since:
// no contact is left out. The incident is read once more after the search was put:
// whoever closes or removes it before that has the search canceled here, whoever
// does so afterwards finds the search and cancels it. A transaction with a check of
// the incident would do the same, and fail the writes of those who close it.
func (a *app) begin(ctx context.Context, rec *sluice.Record) error {
	status, there := rec.New.Lookup("status")
	if there && status.Kind() == item.S && status.Str() != open {
		return sluice.Skip("incident not open")
	}
	in, due, err := parse(rec.New)
	if err != nil { // the item may be mended since, or have failed already
		it, err := a.get(ctx, text(rec.Keys, "PK"))
		if err != nil {
			return err
		}
		if in, due, err = parse(it); err != nil {
			return a.fail(ctx, it, err)
		}
	}
	if err := a.stillOpen(ctx, rec, in.Stage); err != nil { // a try before this one may have opened the search
		return err
	}
	_, err = a.searches.Open(ctx, in.search()) // it may be there already
	if err == nil && isMended(rec) {
		err = a.reopen(ctx, in)
	}
	if err != nil {
		return fmt.Errorf("opening the search of incident %s, stage %d: %w", manhunt.Named(rec.Keys), in.Stage, err)
	}
	if err := a.stillOpen(ctx, rec, in.Stage); err != nil {
		return err
	}
	return a.setTimer(ctx, in, due)
}

// reopen begins a new round of the searches that Reflex itself has canceled, for
// example when the incident failed, including those of earlier stages. A search
// that somebody else has ended stays ended.
func (a *app) reopen(ctx context.Context, in incident) error {
	for stage := int64(1); stage <= in.Stage; stage++ {
		id := SearchID(in.ID, stage)
		s, _, err := a.searches.Search(ctx, id)
		if err == nil && s.Status == manhunt.Canceled && s.ResolvedBy == itself {
			_, err = a.searches.Reopen(ctx, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stillOpen is a Skip for an incident that is not open any more, or was removed: then
// the searches up to the stage are canceled.
func (a *app) stillOpen(ctx context.Context, rec *sluice.Record, stage int64) error {
	it, err := a.get(ctx, text(rec.Keys, "PK"))
	if err != nil || text(it, "status") == open {
		return err
	}
	if err := a.cancel(ctx, rec, it, stage); err != nil {
		return err
	}
	return sluice.Skip("incident not open")
}

// itself is who ends a search that is canceled with its incident.
const itself = "reflex"

// ending says how an incident ends its searches. The time is that of the record.
func ending(incident sluice.Item, rec *sluice.Record) manhunt.Ending {
	why := "incident removed"
	if incident.Exists() {
		why = "incident " + text(incident, "status")
	}
	return manhunt.Ending{By: itself, At: rec.Created, Why: why}
}

// fail ends a malformed incident and writes the reason to the item. The record
// becomes a dead letter. A record that comes again, or after the incident is over,
// is a Skip, so that a function continues.
func (a *app) fail(ctx context.Context, it sluice.Item, why error) error {
	was, _ := it.Lookup("status")
	if !it.Exists() || was.Kind() == item.S && was.Str() != open {
		return sluice.Skip("incident not open")
	}
	op := kit.Set(dynamo.Update(a.d.Table, key(text(it, "PK")), ""), map[string]any{"status": failed, "reason": why.Error()})
	if err := a.write(ctx, text(it, "PK"), kit.Same(op, it, "entityType", "status")); err != nil {
		return err
	}
	return sluice.Permanent(fmt.Errorf("incident %s: %w", manhunt.Named(it), why))
}

func (a *app) setTimer(ctx context.Context, in incident, due time.Time) error {
	dedupeKey := in.ID + "#" + strconv.FormatInt(in.Stage, 10)
	var b message.Body
	b.Str("kind", "reflex.stage").
		Int("v", 1).
		Str("incidentId", in.ID).
		Int("stage", in.Stage).
		Time("notBefore", due).
		Str("dedupeKey", dedupeKey)
	err := a.d.Send(ctx, sluice.Message{
		Body:  string(b.Bytes()),
		Delay: message.Delay(due, a.d.Now(), a.d.MaxDelay),
		Attributes: map[string]sluice.MessageAttribute{
			"dedupeKey": {Value: dedupeKey},
			"notBefore": {Value: due.UTC().Format(time.RFC3339Nano)},
		},
	})
	if err != nil {
		return fmt.Errorf("setting the timer of incident %s, stage %d: %w", manhunt.Named(key(in.ID)), in.Stage, err)
	}
	return nil
}

// limit handles the end of a stage's time: the next stage, or none.
func (a *app) limit(ctx context.Context, rec *sluice.Record) error {
	var m struct {
		Incident  string `dynamodbav:"incidentId"`
		Stage     int64  `dynamodbav:"stage"`
		NotBefore string `dynamodbav:"notBefore"`
	}
	if err := rec.New.Decode(&m); err != nil {
		return sluice.Permanent(fmt.Errorf("message of a stage: %w", err))
	}
	if m.Incident == "" || m.Stage < 1 || m.NotBefore == "" {
		return sluice.Permanent(errors.New("message of a stage: want incidentId, stage and notBefore"))
	}
	it, err := a.get(ctx, m.Incident)
	if err != nil {
		return err
	}
	stage, _ := it.Lookup("stage")
	if n, _ := stage.Int64(); text(it, "status") != open || n != m.Stage {
		return sluice.Skip("stage is over")
	}
	in, _, err := parse(it)
	if err != nil {
		return a.fail(ctx, it, err)
	}
	fields := map[string]any{"status": exhausted}
	if m.Stage < int64(stages(it)) {
		fields = map[string]any{"stage": m.Stage + 1, "stageStartedDatetime": m.NotBefore}
	}
	// The condition is that nothing has happened to the stage.
	return a.write(ctx, in.ID, kit.Same(kit.Set(dynamo.Update(a.d.Table, key(in.ID), ""), fields), it, "status", "stage"))
}

// resolved handles what Manhunt tells about the end of a search.
func (a *app) resolved(ctx context.Context, rec *sluice.Record) error {
	if text(rec.New, "to") != manhunt.Successful {
		return sluice.Skip("nobody has answered")
	}
	id := text(rec.New, "searchId")
	s, found, err := a.searches.Search(ctx, id)
	if err != nil {
		return err
	}
	if why := s.Unread["metadata"]; why != "" {
		return sluice.Permanent(fmt.Errorf("search %s: metadata: %s", manhunt.Named(manhunt.SearchKey(id)), why))
	}
	incident, _ := s.Metadata["incident"].(string)
	if !found || incident == "" {
		return sluice.Skip("no search for an incident")
	}
	op := kit.Set(dynamo.Update(a.d.Table, key(incident), ""), map[string]any{
		"status": acknowledged, "acknowledgedDatetime": kit.Given(s.Resolved), "acknowledgedBy": kit.Given(s.ResolvedBy),
	})
	return a.write(ctx, incident, op.If("#status = :open").Name("#status", "status").Value(":open", open))
}

// end cancels the searches of an incident that is not open any more, or was removed.
func (a *app) end(ctx context.Context, rec *sluice.Record) error {
	id := text(rec.Keys, "PK")
	it, err := a.get(ctx, id)
	if err != nil {
		return err
	}
	if text(it, "status") == open {
		return sluice.Skip("incident open again")
	}
	return a.cancel(ctx, rec, it, int64(max(stages(rec.Old), stages(rec.New))))
}

// cancel cancels the searches of an incident. Stages may have been removed from
// the list since, and a record may lack the old image. So it continues past the
// known stages until one has no search.
func (a *app) cancel(ctx context.Context, rec *sluice.Record, it sluice.Item, known int64) error {
	id := text(rec.Keys, "PK")
	for stage := int64(1); ; stage++ {
		search, err := a.d.Store.Get(ctx, a.d.Manhunt, manhunt.SearchKey(SearchID(id, stage)))
		if err != nil {
			return fmt.Errorf("reading the search of incident %s, stage %d: %w", manhunt.Named(rec.Keys), stage, err)
		}
		if !search.Exists() {
			if stage > known {
				return nil
			}
			continue
		}
		if _, err := a.searches.Cancel(ctx, SearchID(id, stage), ending(it, rec)); err != nil {
			return err
		}
	}
}

// write changes an incident; a condition that does not hold is a Skip.
func (a *app) write(ctx context.Context, id string, op dynamo.Op) error {
	err := a.d.Store.Write(ctx, op)
	switch {
	case dynamo.IsCondition(err):
		return sluice.Skip("incident has changed")
	case err != nil:
		return fmt.Errorf("changing incident %s: %w", manhunt.Named(key(id)), err)
	}
	return nil
}

// SearchID is the id of the search of an incident's stage, from 1.
func SearchID(incidentID string, stage int64) string {
	sum := sha256.Sum256([]byte(incidentID + "#" + strconv.FormatInt(stage, 10)))
	return hex.EncodeToString(sum[:4])[:7]
}

func key(id string) sluice.Item {
	return item.Of(item.String("PK", id), item.String("SK", "incident"))
}

func text(it sluice.Item, name string) string {
	v, _ := it.Lookup(name)
	return v.Str()
}
