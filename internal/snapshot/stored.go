package snapshot

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/sluicehq/sluice/state"
)

// Stored is a store's state of one backfill.
type Stored struct {
	Name     string    `json:"name,omitempty"`
	TableARN string    `json:"tableArn"`
	Begun    time.Time `json:"begun"`
	Finished time.Time `json:"finished,omitzero"`
	Segments int       `json:"segments"`
	Done     int       `json:"segmentsDone"`
	Items    int64     `json:"items"` // settled
}

// List lists the backfills of an application that a store knows of. A segment whose
// progress cannot be read counts as not begun.
func List(ctx context.Context, store state.Values, app string) (all []Stored, err error) {
	const prefix = "backfill/"
	values, err := store.ListValues(ctx, app, prefix)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		var h head
		if json.Unmarshal(v.Data, &h) != nil || h.Generation == "" {
			continue // a segment's, or unreadable
		}
		name, arn, _ := strings.Cut(strings.TrimPrefix(v.Name, prefix), "/arn:")
		s := Stored{Name: name, TableARN: "arn:" + arn, Begun: h.Begun, Finished: h.Finished, Segments: h.Segments}
		if h.Sum != nil {
			s.Items, s.Done = h.Sum.Items, h.Segments
		} else {
			b := &book{store: store, app: app, name: v.Name, head: h, timeout: time.Minute}
			marks, _, err := b.readable(ctx)
			if err != nil {
				return nil, err
			}
			s.Done, s.Items = totals(marks)
		}
		all = append(all, s)
	}
	return all, nil
}
