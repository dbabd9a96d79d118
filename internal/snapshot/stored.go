package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
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

// List lists the backfills of an application that a store knows of.
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
			for i := range h.Segments {
				var m mark
				data, ok, err := store.GetValue(ctx, app, fmt.Sprintf("%s/%s/%03d", v.Name, h.Generation, i))
				if err != nil {
					return nil, err
				}
				if !ok || json.Unmarshal(data, &m) != nil {
					continue
				}
				s.Items += m.Items
				if m.Done {
					s.Done++
				}
			}
		}
		all = append(all, s)
	}
	return all, nil
}
