package deadletter

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicehq/sluice"
)

// newestVersion is the version of this program; it reads older versions too. It
// writes records as version 1, gaps as version 2, and records that are compressed
// or kept by reference as version 3.
const newestVersion = 3

// Entry is one record that failed for good on one route. If Gap is set, it is a
// range of lost records.
type Entry struct {
	ID string

	// Gap replaces the record: Raw, EventID, EventName and Route are then
	// empty, and Sequence is its After.
	Gap *sluice.Gap

	// Ref replaces Raw when the record was too large.
	Ref *Reference

	Raw       []byte // the whole record as received; see [Entry.Record]
	EventID   string
	EventName sluice.EventName
	Table     string
	StreamARN string
	ShardID   string // empty under Lambda
	Sequence  sluice.Sequence
	Origin    sluice.Origin // at the failure

	Route    string // empty when the record could not be decoded or matched: the entry is for all routes
	Attempts int    // calls of the route's handler, including redrives
	Redrives int    // failed redrives
	First    Fault
	Last     Fault
	ParkedAt time.Time

	// Unverified says why the signature does not prove the sender. It is empty
	// after a proof, and in a [Box] whose letters no other program can write.
	Unverified string
}

// Fault is one failure. Each text is cut after 4 KiB.
type Fault struct {
	At    time.Time
	Error string

	// Details has one map for each error inside with a method Details()
	// map[string]string. For a document that could not be written it has the
	// index, the id, the status and the reason.
	Details []map[string]string
}

// newEntry returns the entry for rec's failure.
func newEntry(rec *sluice.Record, f sluice.Failure, now time.Time) Entry {
	e := Entry{
		Raw: bytes.Clone(rec.Raw()), EventID: rec.EventID, EventName: rec.EventName, Table: rec.Table,
		StreamARN: rec.StreamARN, ShardID: rec.ShardID, Sequence: rec.Sequence, Origin: rec.Origin,
		Route: f.Route, Attempts: f.Attempts,
		First: fault(f.FirstAt, f.First), Last: fault(f.LastAt, f.Last),
		ParkedAt: now,
	}
	e.ID = id(&e, f.Route)
	return e
}

// id is the record's fence, so that ids sort like the changes, and a hash of the
// other fields that identify a record and a route. It omits the shard, which
// Lambda does not report.
func id(e *Entry, route string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q", e.StreamARN, e.EventID, route)
	if e.EventID == "" {
		h.Write(e.Raw)
	}
	fence := e.Sequence
	if !fence.Valid() {
		fmt.Fprintf(h, "%q", fence)
		fence = ""
	}
	return fence.Fence() + "-" + hex.EncodeToString(h.Sum(nil)[:8])
}

// sameFailure reports whether e and o, which share an id, come from one parking.
func (e *Entry) sameFailure(o *Entry) bool {
	return e.ParkedAt.Equal(o.ParkedAt) && e.Attempts == o.Attempts && e.Redrives == o.Redrives &&
		e.Last.At.Equal(o.Last.At) && e.Last.Error == o.Last.Error && e.First.Error == o.First.Error
}

func fault(at time.Time, err error) Fault {
	if err == nil {
		return Fault{At: at}
	}
	return Fault{At: at, Error: cut(err.Error(), mostDetail), Details: detailsOf(err)}
}

// Record decodes the parked record, with its position and the Origin Redriven. Its
// Err says whether it could be decoded. A gap cannot, and neither can a record
// kept by reference, whose keys are known. The record aliases Raw.
func (e *Entry) Record() *sluice.Record {
	rec := sluice.DecodeRecord(e.Raw)
	switch {
	case e.Ref != nil:
		rec = e.Ref.record()
		rec.EventID, rec.EventName, rec.Sequence = e.EventID, e.EventName, e.Sequence
	case rec.EventName == sluice.Snapshot: // it has the position of the change that it replaces, beside its text
		rec.Sequence = e.Sequence
	}
	rec.Origin = sluice.Redriven
	// A GetRecords response names neither stream nor shard.
	rec.Table, rec.StreamARN, rec.ShardID = e.Table, e.StreamARN, e.ShardID
	return rec
}

// stored is the JSON form of an entry. Names are added, never changed or removed.
// A change that an older program would misread raises the version. An older program that
// redrives a letter in vain stores it without names that it does not know.
type stored struct {
	Version   int         `json:"version"`
	Kind      string      `json:"kind,omitempty"` // of version 2: "gap"; of 3 also "reference"
	ID        string      `json:"id"`
	Route     string      `json:"route,omitempty"`
	Table     string      `json:"table,omitempty"`
	Position  position    `json:"position"`
	EventID   string      `json:"eventId,omitempty"`
	EventName string      `json:"eventName,omitempty"`
	Origin    string      `json:"origin"`
	Attempts  int         `json:"attempts"`
	Redrives  int         `json:"redrives,omitempty"`
	First     storedFault `json:"firstError"`
	Last      storedFault `json:"lastError"`
	ParkedAt  time.Time   `json:"parkedAt"`

	// One of three: base64 for a record that is not JSON text, gzip for a long
	// one.
	Record json.RawMessage `json:"record,omitempty"`
	Base64 []byte          `json:"recordBase64,omitempty"`
	Gzip   []byte          `json:"recordGzip,omitempty"`

	// Instead of a record.
	Gap       *storedGap       `json:"gap,omitempty"`
	Reference *storedReference `json:"reference,omitempty"`
}

type position struct {
	StreamARN string `json:"streamArn,omitempty"`
	ShardID   string `json:"shardId,omitempty"`
	Sequence  string `json:"sequence,omitempty"`
}

type storedFault struct {
	At   time.Time `json:"at,omitzero"`
	Text string    `json:"text,omitempty"`

	Details []map[string]string `json:"details,omitempty"`
}

// Append appends the entry to dst as one line of JSON, without a newline.
func (e *Entry) Append(dst []byte) ([]byte, error) { return e.stored().append(dst) }

func (e *Entry) stored() *stored {
	s := &stored{
		Version: 1, ID: e.ID, Route: e.Route, Table: e.Table,
		Position: position{e.StreamARN, e.ShardID, string(e.Sequence)},
		EventID:  e.EventID, EventName: string(e.EventName), Origin: e.Origin.String(),
		Attempts: e.Attempts, Redrives: e.Redrives, ParkedAt: e.ParkedAt.UTC(),
		First: storedFault{e.First.At.UTC(), e.First.Error, e.First.Details}, Last: storedFault{e.Last.At.UTC(), e.Last.Error, e.Last.Details},
	}
	switch {
	case e.Gap != nil:
		s.Version, s.Kind, s.Gap = 2, kindGap, storeGap(e.Gap)
	case e.Ref != nil:
		s.Version, s.Kind = 3, kindReference
		s.Reference = &storedReference{Keys: e.Ref.Keys.Raw(), Bytes: e.Ref.Bytes, Created: e.Ref.Created.UTC()}
	case json.Valid(e.Raw) && utf8.Valid(e.Raw) && !hasNoncharacters(e.Raw): // else JSON would change it
		s.Record = e.Raw
	default:
		s.Base64 = e.Raw
	}
	return s
}

func (s *stored) append(dst []byte) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false) // keeps the record as received
	if err := enc.Encode(s); err != nil {
		return nil, fmt.Errorf("dead letter %s: %w", s.ID, err)
	}
	data := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if hasNoncharacters(data[len(dst):]) {
		data = append(dst, noncharacters.Replace(string(data[len(dst):]))...)
	}
	return data, nil
}

// noncharacters are allowed in JSON strings, but not in an SQS message.
var noncharacters = strings.NewReplacer("\uFFFE", `\ufffe`, "\uFFFF", `\uffff`)

func hasNoncharacters(data []byte) bool {
	return bytes.Contains(data, []byte("\uFFFE")) || bytes.Contains(data, []byte("\uFFFF"))
}

// Parse decodes the output of [Entry.Append] of this or an older version. Of an
// entry of a newer version it returns the ID, beside the error.
func Parse(data []byte) (Entry, error) {
	var head struct {
		Version int    `json:"version"`
		ID      string `json:"id"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return Entry{}, fmt.Errorf("not a dead letter: %w", err)
	}
	switch {
	case head.Version < 1 || head.ID == "":
		return Entry{}, fmt.Errorf("not a dead letter: version %d, id %q", head.Version, head.ID)
	case head.Version > newestVersion:
		return Entry{ID: head.ID}, fmt.Errorf("dead letter %s is of version %d, written by a newer program; this one reads versions up to %d: run the newer program", head.ID, head.Version, newestVersion)
	}
	var s stored
	if err := json.Unmarshal(data, &s); err != nil {
		return Entry{}, fmt.Errorf("dead letter %s: %w", head.ID, err)
	}
	e := Entry{
		ID: s.ID, Raw: s.Record, Route: s.Route, Table: s.Table,
		StreamARN: s.Position.StreamARN, ShardID: s.Position.ShardID, Sequence: sluice.Sequence(s.Position.Sequence),
		EventID: s.EventID, EventName: sluice.EventName(s.EventName),
		Attempts: s.Attempts, Redrives: s.Redrives, ParkedAt: s.ParkedAt,
		First: Fault{s.First.At, s.First.Text, s.First.Details}, Last: Fault{s.Last.At, s.Last.Text, s.Last.Details},
	}
	var err error
	switch {
	case s.Kind == kindGap && s.Gap != nil:
		e.Gap = s.Gap.gap(&e)
	case s.Kind == kindReference && s.Reference != nil:
		e.Ref, err = s.Reference.reference()
	case s.Kind != "" || s.Gap != nil || s.Reference != nil:
		err = fmt.Errorf("kind %q is unknown, or what it holds is missing", s.Kind)
	case s.Gzip != nil:
		e.Raw, err = unpack(s.Gzip)
	case s.Record == nil:
		e.Raw = s.Base64
	}
	if err != nil {
		return Entry{}, fmt.Errorf("dead letter %s: %w", s.ID, err)
	}
	for _, o := range []sluice.Origin{sluice.Live, sluice.Replayed, sluice.Redriven, sluice.Backfilled} {
		if s.Origin == o.String() {
			e.Origin = o
			return e, nil
		}
	}
	return Entry{}, fmt.Errorf("dead letter %s: unknown origin %q", s.ID, s.Origin)
}

// ContentID returns an id of everything in e that a redrive uses. ID and errors do
// not change it. It names an unsigned letter ([How.Unsigned]) as the operator saw
// it: another letter with the same ID may be sent meanwhile.
func (e *Entry) ContentID() (string, error) {
	s := e.stored()
	s.ID, s.Attempts, s.Redrives, s.ParkedAt = "", 0, 0, time.Time{}
	s.First, s.Last = storedFault{}, storedFault{}
	data, err := s.append(nil)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	prefix := ""
	if e.Gap != nil {
		prefix = gapPrefix
	}
	fence := e.Sequence
	if !fence.Valid() {
		fence = ""
	}
	// Twice the length of other ids: the author of a letter can search for two
	// with the same id.
	return prefix + fence.Fence() + "-" + hex.EncodeToString(sum[:16]), nil
}
