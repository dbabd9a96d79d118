package reflex

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
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
	ID           string  `dynamodbav:"PK"`
	DomainID     string  `dynamodbav:"domainId"`
	Status       string  `dynamodbav:"status"`
	Stage        int64   `dynamodbav:"stage"` // from 1
	StageStarted string  `dynamodbav:"stageStartedDatetime"`
	Stages       []stage `dynamodbav:"stages"`
}

type stage struct {
	ContactID    string `dynamodbav:"contactId"`
	LimitSeconds int64  `dynamodbav:"limitSeconds"`
}

// parse reads an incident and when its stage ends. It looks at all stages, so that a
// malformed one is known before its turn comes.
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
	if in.Stage < 1 || in.Stage > int64(len(in.Stages)) {
		return in, due, fmt.Errorf("it is at stage %d of %d", in.Stage, len(in.Stages))
	}
	for i, s := range in.Stages {
		if s.ContactID == "" || s.LimitSeconds < 0 || s.LimitSeconds > math.MaxInt64/int64(time.Second) {
			return in, due, fmt.Errorf("stage %d: want a contactId, and a limitSeconds that is not negative", i+1)
		}
	}
	started, err := time.Parse(time.RFC3339, in.StageStarted)
	if err != nil {
		return in, due, errors.New("stageStartedDatetime is no time in RFC 3339, such as 2019-12-30T20:00:00Z")
	}
	return in, started.Add(time.Duration(in.Stages[in.Stage-1].LimitSeconds) * time.Second), nil
}

// get reads an incident, consistently; the absent Item is one that is not there.
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
		ID: SearchID(in.ID, in.Stage), DomainID: in.DomainID, ContactID: in.Stages[in.Stage-1].ContactID, Started: in.StageStarted,
		Metadata: item.Of(item.String("incident", in.ID), item.Number("stage", strconv.FormatInt(in.Stage, 10))),
	}
}

// stages counts the stages of an image.
func stages(it sluice.Item) int {
	v, _ := it.Lookup("stages")
	return v.Len()
}

//go:embed fixtures/items.ndjson
var fixtures []byte

// Fixtures returns items in the order in which they are to be written: an open
// incident with two stages.
func Fixtures() []sluice.Item {
	var items []sluice.Item
	for line := range bytes.Lines(fixtures) {
		it, err := item.Parse(line)
		if err != nil {
			panic(fmt.Sprintf("reflex: fixtures: %v", err)) // the file is a part of the program
		}
		items = append(items, it)
	}
	return items
}
