package sluice

import "time"

// EventName says what happened to an item.
type EventName string

const (
	Insert EventName = "INSERT"
	Modify EventName = "MODIFY"
	Remove EventName = "REMOVE"
	// Snapshot marks a record made by a backfill; only routes that name it
	// receive it.
	Snapshot EventName = "SNAPSHOT"
	// Delivery marks a message of a queue; only routes that name it receive it.
	Delivery EventName = "MESSAGE"
)

// Origin says how a record came to be handled.
type Origin uint8

const (
	Live       Origin = iota // from the stream, by poller or Lambda
	Replayed                 // from a file or a re-read range of the stream
	Redriven                 // from the dead letters
	Backfilled               // from a scan of the table
)

// String returns "live", "replayed", "redriven" or "backfilled".
func (o Origin) String() string {
	switch o {
	case Live:
		return "live"
	case Replayed:
		return "replayed"
	case Redriven:
		return "redriven"
	case Backfilled:
		return "backfilled"
	}
	return "unknown"
}

// UserIdentity names the principal behind a change. DynamoDB sets it only on
// deletions by TTL, in the Region where the item expired.
type UserIdentity struct {
	Type        string // "Service"
	PrincipalID string // "dynamodb.amazonaws.com"
}

// Record is one change of one item.
//
// Its images alias the page they were decoded from and must not be changed.
// They may be kept after the handler returns only through [Record.Clone].
// Strings are copies and may be kept.
type Record struct {
	EventID   string
	EventName EventName
	Table     string // from the stream ARN
	StreamARN string // of a backfilled record the table's ARN
	Region    string // awsRegion: where the stream is
	ShardID   string // empty under Lambda
	Sequence  Sequence
	Created   time.Time // approximate, to the second on AWS; zero when absent
	Keys      Item
	Old       Item // the item before the change; absent on INSERT and by view type
	New       Item // the item after the change; absent on REMOVE and by view type
	ViewType  string

	UserIdentity *UserIdentity
	SizeBytes    int // as the service counts it
	Origin       Origin

	raw []byte // the record as it came: one JSON object
	err error  // why it could not be decoded
}

// Err returns why the record could not be decoded, or nil. It is a
// [Permanent] error. Position fields that could be read are set all the same.
func (r *Record) Err() error { return r.err }

// Raw returns the record as it came: one JSON object in the shape of a Lambda
// event's record or of a GetRecords answer's. It aliases the page.
func (r *Record) Raw() []byte { return r.raw }

// Image returns the state of the item that the record is about: the new image,
// else the old one, else the keys.
func (r *Record) Image() Item {
	if r.New.Exists() {
		return r.New
	}
	if r.Old.Exists() {
		return r.Old
	}
	return r.Keys
}

// IsTTL reports whether DynamoDB deleted the item because its time to live ran
// out: a REMOVE by the DynamoDB service. A deletion that a global table
// replicated from another Region carries no identity and reports false.
func (r *Record) IsTTL() bool {
	return r.EventName == Remove && r.UserIdentity != nil &&
		r.UserIdentity.Type == "Service" && r.UserIdentity.PrincipalID == "dynamodb.amazonaws.com"
}
