package manhunt

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/router"
)

// What becomes of a search.
const (
	Active     = "active"
	Canceled   = "canceled"
	Successful = "successful"
	Failed     = "failed"
)

var statuses = []string{Active, Canceled, Successful, Failed}

// Resolutions of a failed search; that of a successful one is the response, and that
// of a canceled one the reason.
const (
	contactNotFound  = "contact_not_found"
	noContactMethods = "no_contact_methods"
	badMethods       = "bad_steps" // all of them are malformed
	noResponse       = "no_response"
	badSearch        = "bad_search" // followed by a colon and the mistake
)

// Ending says who has ended a search, when, and how or why.
type Ending struct {
	By  string    // empty: it is not known
	At  time.Time // zero: it is not known
	Why string    // the response, or the reason
}

// manhuntItself is who ends a search that fails.
const manhuntItself = "manhunt"

// Attributes of a search that say how it has ended.
const (
	resolution       = "resolution"
	resolvedBy       = "resolvedBy"
	resolvedDatetime = "resolvedDatetime"
)

// end is the one way in which a search's status changes: once, from active, and
// with its place in GSI2. false says that it was over, or is not there.
func (t *Table) end(ctx context.Context, searchID, contactID, status string, e Ending) (ended bool, err error) {
	op := t.ending(searchID, contactID, status, e)
	return t.write(ctx, op.If("#active = :active").Name("#active", "status").Value(":active", Active))
}

// endRound ends a search as failed while it is in a round.
func (t *Table) endRound(ctx context.Context, e escalation.Escalation, reason string) error {
	op := t.ending(e.ID, e.Ladder, Failed, Ending{By: manhuntItself, At: causedAt(ctx), Why: reason})
	_, err := t.write(ctx, searches.StillIn(e.Item, op))
	return err
}

func (t *Table) ending(searchID, contactID, status string, e Ending) dynamo.Op {
	return kit.Set(dynamo.Update(t.name, key(searchID, "search"), ""), map[string]any{
		"status": status, "GSI2PK": status + "#" + contactID,
		// Of an end that was taken back nothing is left.
		resolution: kit.Given(e.Why), resolvedBy: kit.Given(e.By), resolvedDatetime: kit.Given(timeText(e.At)),
	})
}

// timeText is "" for the zero time.
func timeText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// write makes a write of a row; false says that its condition does not hold.
func (t *Table) write(ctx context.Context, op dynamo.Op) (written bool, err error) {
	err = t.store.Write(ctx, op)
	switch {
	case err == nil:
		return true, nil
	case dynamo.IsCondition(err):
		return false, nil
	}
	return false, fmt.Errorf("writing row %s: %w", Named(op.Key), err)
}

// Cancel ends a search as an operator does; false when it was over before, or
// is not there.
func (t *Table) Cancel(ctx context.Context, searchID string, e Ending) (canceled bool, err error) {
	return t.endNow(ctx, searchID, Canceled, e)
}

// Reopen takes back how a search has ended: a new round of its methods begins.
// false when it is active, or is not there.
func (t *Table) Reopen(ctx context.Context, searchID string) (reopened bool, err error) {
	it, err := t.get(ctx, searchID, "search", "search")
	if err != nil || !it.Exists() {
		return false, err
	}
	op := kit.Set(dynamo.Update(t.name, key(searchID, "search"), ""), map[string]any{
		"status": Active, "GSI2PK": Active + "#" + attribute(it, "contactId"),
		resolution: nil, resolvedBy: nil, resolvedDatetime: nil, malformedMethods: nil,
	})
	return t.write(ctx, op.If("#type = :search AND #status <> :active").
		Name("#type", "entityType").Name("#status", "status").Value(":search", "search").Value(":active", Active))
}

// endNow is end for whoever knows a search by its id alone.
func (t *Table) endNow(ctx context.Context, searchID, status string, e Ending) (ended bool, err error) {
	it, err := t.get(ctx, searchID, "search", "search")
	if err != nil || attribute(it, "status") != Active {
		return false, err
	}
	return t.end(ctx, searchID, attribute(it, "contactId"), status, e)
}

// notify tells how a search ended.
func (a *app) notify(ctx context.Context, rec *sluice.Record) error {
	id, to := attribute(rec.Keys, "PK"), attribute(rec.New, "status")
	var b message.Body
	b.Str("kind", "manhunt.resolved").
		Str("searchId", id).
		Str("from", attribute(rec.Old, "status")).
		Str("to", to).
		Str("dedupeKey", id+"#"+to)
	if err := a.d.Notify(ctx, kit.Message(b.Bytes(), id+"#"+to)); err != nil {
		return fmt.Errorf("telling that search %s is %s: %w", Named(rec.Keys), to, err)
	}
	return nil
}

// mayResume lets pass what makes a search active again, gives it a round, or
// changes its snooze.
func mayResume() router.Option {
	return router.When(func(rec *sluice.Record) bool { return attribute(rec.New, "status") == Active })
}

// hasEnded lets pass what takes a search from active to another status.
func hasEnded() router.Option {
	return router.When(func(rec *sluice.Record) bool {
		return attribute(rec.Old, "status") == Active && attribute(rec.New, "status") != Active
	})
}
