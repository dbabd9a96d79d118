package letters

import (
	"encoding/json"
	"maps"
	"time"
	"unicode/utf8"

	"github.com/sluicehq/sluice/deadletter"
)

// Outline is an entry for people and for programs that show it: all but the
// record, unless that is asked for.
type Outline struct {
	ID        string          `json:"id"`
	Kind      string          `json:"kind"` // record, reference (its record was too large to be kept) or gap
	Route     string          `json:"route,omitempty"`
	Table     string          `json:"table,omitempty"`
	EventName string          `json:"eventName,omitempty"`
	EventID   string          `json:"eventId,omitempty"`
	StreamARN string          `json:"streamArn,omitempty"`
	ShardID   string          `json:"shardId,omitempty"`
	Sequence  string          `json:"sequence,omitempty"`
	Origin    string          `json:"origin,omitempty"`
	Keys      json.RawMessage `json:"keys,omitempty"` // plain JSON
	Bytes     int             `json:"bytes"`          // of the record
	Attempts  int             `json:"attempts"`
	Redrives  int             `json:"redrives"`
	First     Fault           `json:"firstError"`
	Last      Fault           `json:"lastError"`
	Created   time.Time       `json:"created,omitzero"` // when the change was made, about
	ParkedAt  time.Time       `json:"parkedAt"`
	Gap       string          `json:"gap,omitempty"` // the lost range

	// Unverified says why its signature does not prove who sent it; see [deadletter.Entry].
	Unverified string `json:"unverified,omitempty"`

	Record json.RawMessage `json:"record,omitempty"`
	Base64 []byte          `json:"recordBase64,omitempty"` // a record that is not JSON
}

// Fault is a [deadletter.Fault].
type Fault struct {
	At      time.Time           `json:"at,omitzero"`
	Error   string              `json:"error,omitempty"`
	Details []map[string]string `json:"details,omitempty"`
}

// faultOf omits a service's reason from the details, unless payloads are wanted:
// OpenSearch quotes the value that it refuses.
func faultOf(f deadletter.Fault, payload bool) Fault {
	o := Fault(f)
	if payload {
		return o
	}
	o.Details = nil
	for _, d := range f.Details {
		d = maps.Clone(d)
		delete(d, "reason")
		o.Details = append(o.Details, d)
	}
	return o
}

// OutlineOf describes e, with the record and the reasons of services when payload
// is true.
func OutlineOf(e *deadletter.Entry, payload bool) Outline {
	rec := e.Record()
	o := Outline{
		ID: e.ID, Kind: "record", Route: e.Route, Table: e.Table,
		EventName: string(e.EventName), EventID: e.EventID, StreamARN: e.StreamARN, ShardID: e.ShardID,
		Sequence: string(e.Sequence), Origin: e.Origin.String(), Bytes: len(e.Raw),
		Attempts: e.Attempts, Redrives: e.Redrives, ParkedAt: e.ParkedAt, Created: rec.Created,
		First: faultOf(e.First, payload), Last: faultOf(e.Last, payload), Unverified: e.Unverified,
	}
	if rec.Keys.Exists() {
		o.Keys = rec.Keys.AppendJSON(nil)
	}
	switch {
	case e.Gap != nil:
		o.Kind, o.Gap, o.Origin = "gap", e.Gap.String(), ""
	case e.Ref != nil:
		o.Kind, o.Bytes = "reference", e.Ref.Bytes
	case !payload:
	case json.Valid(e.Raw) && utf8.Valid(e.Raw):
		o.Record = e.Raw
	default:
		o.Base64 = e.Raw
	}
	return o
}
