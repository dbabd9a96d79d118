package reflex

import (
	"bytes"
	"context"
	_ "embed"
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

func parse(it sluice.Item) (in incident, err error) {
	if err := it.Decode(&in); err != nil {
		return in, sluice.Permanent(fmt.Errorf("incident: %w", err))
	}
	return in, nil
}

// get reads an incident, consistently; one that is not there has no status.
func (a *app) get(ctx context.Context, id string) (incident, error) {
	it, err := a.d.Store.Get(ctx, a.d.Table, key(id))
	if err != nil {
		return incident{}, fmt.Errorf("reading incident %s: %w", id, err)
	}
	if text(it, "entityType") != "incident" {
		return incident{}, nil
	}
	return parse(it)
}

// stage returns what the incident is at.
func (in incident) stage() (stage, error) {
	if in.Stage < 1 || in.Stage > int64(len(in.Stages)) {
		return stage{}, sluice.Permanent(fmt.Errorf("incident %s is at stage %d of %d", in.ID, in.Stage, len(in.Stages)))
	}
	s := in.Stages[in.Stage-1]
	if s.ContactID == "" || s.LimitSeconds < 0 || s.LimitSeconds > math.MaxInt64/int64(time.Second) {
		return stage{}, sluice.Permanent(fmt.Errorf("incident %s, stage %d: want a contactId and a limitSeconds that is not negative", in.ID, in.Stage))
	}
	return s, nil
}

// due returns when the stage ends.
func (in incident) due(s stage) (time.Time, error) {
	started, err := time.Parse(time.RFC3339, in.StageStarted)
	if err != nil {
		return started, sluice.Permanent(fmt.Errorf("incident %s: stageStartedDatetime is no time in RFC 3339, such as 2019-12-30T20:00:00Z", in.ID))
	}
	return started.Add(time.Duration(s.LimitSeconds) * time.Second), nil
}

// search is Manhunt's row for the stage that the incident is at.
func (in incident) search(s stage) sluice.Item {
	metadata := item.Of(item.String("incident", in.ID), item.Number("stage", strconv.FormatInt(in.Stage, 10)))
	return item.Of(
		item.String("entityType", "search"),
		item.String("PK", SearchID(in.ID, in.Stage)),
		item.String("SK", "search"),
		item.String("GSI1PK", s.ContactID),
		item.String("GSI1SK", in.StageStarted),
		item.String("GSI2PK", manhunt.Active+"#"+s.ContactID),
		item.String("GSI2SK", in.StageStarted),
		item.String("contactId", s.ContactID),
		item.String("domainId", in.DomainID),
		item.String("status", manhunt.Active),
		item.Map("metadata", metadata),
	)
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
