package reflex

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/item"
)

// What becomes of an incident; closed is the users' own.
const (
	open         = "open"
	acknowledged = "acknowledged"
	exhausted    = "exhausted"
	failed       = "failed" // it is malformed; reason says why
)

// incident is a row of the table.
type incident struct {
	ID           string `dynamodbav:"PK"`
	DomainID     string `dynamodbav:"domainId"`
	Status       string `dynamodbav:"status"`
	Stage        int64  `dynamodbav:"stage"` // from 1
	StageStarted string `dynamodbav:"stageStartedDatetime"`

	now stage // of the list stages
}

type stage struct {
	ContactID    string `dynamodbav:"contactId"`
	LimitSeconds int64  `dynamodbav:"limitSeconds"`
}

// parse reads an incident and when its stage ends. Of the stages it looks at that one
// only: one behind it that is malformed keeps nobody from being called before.
func parse(it sluice.Item) (in incident, due time.Time, err error) {
	if err := it.Decode(&in); err != nil {
		return in, due, err
	}
	if in.Status != open { // whoever asks knows that it is no other text
		return in, due, errors.New("status is missing, or no text")
	}
	if in.DomainID == "" {
		return in, due, errors.New("domainId is missing")
	}
	if n := stages(it); in.Stage < 1 || in.Stage > int64(n) {
		return in, due, fmt.Errorf("it is at stage %d of %d", in.Stage, n)
	}
	list, _ := it.Lookup("stages")
	n := int64(0)
	for v := range list.List() {
		if n++; n != in.Stage {
			continue
		}
		if err := v.Decode(&in.now); err != nil {
			return in, due, fmt.Errorf("stage %d: %w", n, err)
		}
	}
	if s := in.now; s.ContactID == "" || s.LimitSeconds < 0 || s.LimitSeconds > math.MaxInt64/int64(time.Second) {
		return in, due, fmt.Errorf("stage %d: want a contactId, and a limitSeconds that is not negative", in.Stage)
	}
	started, err := time.Parse(time.RFC3339, in.StageStarted)
	if err != nil {
		return in, due, errors.New("stageStartedDatetime is no time in RFC 3339, such as 2019-12-30T20:00:00Z")
	}
	return in, started.Add(time.Duration(in.now.LimitSeconds) * time.Second), nil
}

// get reads an incident consistently; a missing one is the absent Item.
func (a *app) get(ctx context.Context, id string) (sluice.Item, error) {
	it, err := a.d.Store.Get(ctx, a.d.Table, key(id))
	if err != nil {
		return it, fmt.Errorf("reading incident %s: %w", manhunt.Named(key(id)), err)
	}
	if text(it, "entityType") != "incident" {
		return sluice.Item{}, nil
	}
	return it, nil
}

// search is Manhunt's search for the stage that the incident is at.
func (in incident) search() manhunt.NewSearch {
	return manhunt.NewSearch{
		ID: SearchID(in.ID, in.Stage), DomainID: in.DomainID, ContactID: in.now.ContactID, Started: in.StageStarted,
		Metadata: item.Of(item.String("incident", in.ID), item.Number("stage", strconv.FormatInt(in.Stage, 10))),
	}
}

// stages counts the stages of an image; a value that is not a list has none.
func stages(it sluice.Item) int {
	v, _ := it.Lookup("stages")
	if v.Kind() != item.L {
		return 0
	}
	return v.Len()
}

//go:embed fixtures/items.ndjson
var fixtures []byte

// Fixtures returns items in the order in which they are to be written: an open
// incident with two stages.
func Fixtures() []sluice.Item { return kit.Items(fixtures) }
