package sluice

import "time"

// EventName is the kind of a change.
type EventName string

const (
	Insert EventName = "INSERT"
	Modify EventName = "MODIFY"
	Remove EventName = "REMOVE"
	// Snapshot marks a backfill record. Only routes that name it receive it.
	Snapshot EventName = "SNAPSHOT"
	// Delivery marks a queue message. Only routes that name it receive it.
	Delivery EventName = "MESSAGE"
)

// Origin says where a record comes from.
type Origin uint8

const (
	Live       Origin = iota // from the stream, by poller or Lambda
	Replayed                 // from a file, or read again from the stream
	Redriven                 // from the dead letters
	Backfilled               // from a scan of the table
)

var originNames = [...]string{"live", "replayed", "redriven", "backfilled"}

// String returns "live", "replayed", "redriven" or "backfilled".
func (o Origin) String() string {
	if int(o) >= len(originNames) {
		return "unknown"
	}
	return originNames[o]
}

// Record is one change of one item.
//
// Its images alias the page from which they were decoded. Do not change them. To
// keep a record after the handler returns, use [Record.Clone]. Strings are copies
// and may be kept.
type Record struct {
	EventID   string
	EventName EventName
	Table     string // from the stream ARN
	StreamARN string // of a backfill record: the table's ARN
	Region    string // awsRegion: where the stream is
	ShardID   string // empty under Lambda
	Sequence  Sequence
	Created   time.Time // approximate, to the second on AWS; zero when absent
	Keys      Item
	Old       Item // the item before the change; absent on INSERT and by view type
	New       Item // the item after the change; absent on REMOVE and by view type
	ViewType  string

	SizeBytes int // as the service counts it
	Origin    Origin

	expired bool   // userIdentity is the DynamoDB service: set only on deletions by TTL
	raw     []byte // one JSON object as received
	err     error  // decoding failure
}

// Err returns the decoding failure of the record, or nil. It is a [Permanent]
// error. Readable position fields are set even so.
func (r *Record) Err() error { return r.err }

// Raw returns the record as received: one JSON object of a Lambda event or of a
// GetRecords response. It aliases the page.
func (r *Record) Raw() []byte { return r.raw }

// Image returns the latest known state of the item: the new image, else the old
// image, else the keys.
func (r *Record) Image() Item {
	if r.New.Exists() {
		return r.New
	}
	if r.Old.Exists() {
		return r.Old
	}
	return r.Keys
}

// IsTTL reports whether DynamoDB deleted the item because its time to live
// expired: a REMOVE by the DynamoDB service. A deletion that a global table
// replicated from another Region has no identity, so IsTTL reports false.
func (r *Record) IsTTL() bool { return r.EventName == Remove && r.expired }
