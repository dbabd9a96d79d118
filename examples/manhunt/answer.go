package manhunt

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
)

// Response is what somebody said to an attempt.
type Response struct {
	Text string
	By   string    // who said it; "" is the contact
	At   time.Time // when; zero is not known: the stream's time of the write counts
}

// Answer records that the contact answers an attempt of the search's current
// round. The first answer stays. It returns false for a later answer, or for an
// attempt that does not exist.
func (t *Table) Answer(ctx context.Context, searchID string, step int64, text string) (first bool, err error) {
	return t.Respond(ctx, searchID, step, Response{Text: text, At: time.Now().Truncate(time.Second)})
}

// Respond is Answer for others who learn the response: from a carrier, or from
// somebody else than the contact.
func (t *Table) Respond(ctx context.Context, searchID string, step int64, r Response) (first bool, err error) {
	s, err := t.get(ctx, searchID, "search", "search")
	if err != nil {
		return false, err
	}
	round, _ := s.Lookup("round")
	n, _ := round.Int64() // 0 where it is missing
	op := kit.Set(dynamo.Update(t.name, key(searchID, AttemptID(searchID, n, step)), ""), map[string]any{
		"response": r.Text, "respondedBy": kit.Given(r.By), "respondedDatetime": kit.Given(timeText(r.At)),
	})
	first, err = t.write(ctx, op.If("#type = :attempt AND attribute_not_exists(#response)").
		Name("#type", "entityType").Name("#response", "response").Value(":attempt", "searchAttempt"))
	if err != nil {
		err = fmt.Errorf("noting the answer to step %d of search %s: %w", step, Named(key(searchID, "search")), err)
	}
	return first, err
}

// resolve handles the first response to an attempt.
func (a *app) resolve(ctx context.Context, rec *sluice.Record) error {
	e := Ending{
		By:  cmp.Or(attribute(rec.New, "respondedBy"), attribute(rec.New, "contactId")),
		At:  causedAt(ctx),
		Why: cmp.Or(attribute(rec.New, "response"), "answered"),
	}
	if at, err := time.Parse(time.RFC3339, attribute(rec.New, "respondedDatetime")); err == nil {
		e.At = at
	}
	ended, err := a.table.endNow(ctx, attribute(rec.Keys, "PK"), Successful, e)
	if err == nil && !ended {
		return sluice.Skip("search is over")
	}
	return err
}
