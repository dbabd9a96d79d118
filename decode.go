package sluice

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/jsonscan"
	"github.com/sluicehq/sluice/item"
)

// Source names the stream and shard of a GetRecords response. The response itself
// does not.
type Source struct {
	StreamARN string
	ShardID   string
}

// Page is one decoded envelope.
type Page struct {
	Records []Record

	// NextShardIterator is set by GetRecords responses; empty at the end of a
	// shard.
	NextShardIterator string

	// State is the raw JSON value of "state" in a Lambda event of a tumbling
	// window, whose response repeats it; {} when absent, nil without a window.
	State []byte
}

// EnvelopeError is the error for an input that cannot be split into records.
type EnvelopeError struct {
	Offset int // in bytes
	Msg    string
}

func (e *EnvelopeError) Error() string {
	return fmt.Sprintf("not a batch of stream records: %s (offset %d)", e.Msg, e.Offset)
}

// DecodeEvent decodes a Lambda function's input: {"Records":[…]} from an event
// source mapping, or a bare array from EventBridge Pipes. Any other input is an
// [*EnvelopeError] that names the kind of input.
//
// The images of the page alias data. A record that cannot be decoded stays in the
// page with [Record.Err] set. DecodeEvent returns an error only when it cannot
// split data into records. A duplicate member is an error if Sluice reads that
// member. Sluice ignores other members, but they must be valid JSON.
func DecodeEvent(data []byte) (Page, error) {
	d := decoder{Reader: jsonscan.Reader{B: data}, lambda: true}
	i := jsonscan.Space(data, 0)
	if i < len(data) && data[i] == '[' {
		i = d.records(i)
	} else {
		i = d.envelope(i)
	}
	return d.end(i)
}

// DecodeGetRecords decodes the body of a GetRecords response, like DecodeEvent.
func DecodeGetRecords(data []byte, src Source) (Page, error) {
	d := decoder{Reader: jsonscan.Reader{B: data}, src: src}
	return d.end(d.envelope(jsonscan.Space(data, 0)))
}

// DecodeRecord decodes one record: a line of NDJSON, or the record of a dead
// letter. It never returns nil; Record.Err reports a decoding failure. The record
// aliases data. A backfill record (event name SNAPSHOT) needs no sequence number.
// A queue message has the form of [Message.Record] or of a Lambda event.
func DecodeRecord(data []byte) *Record {
	if j, ok := queued(data); ok {
		return j.record(data)
	}
	d := decoder{Reader: jsonscan.Reader{B: data}, single: true}
	rec := new(Record)
	i := jsonscan.Space(data, 0)
	end := d.record(rec, i)
	if end < 0 {
		rec.fail(d.failure())
		rec.raw = data
		return rec
	}
	rec.raw = data[i:end:end]
	if end = jsonscan.Space(data, end); end != len(data) {
		rec.fail(fmt.Errorf("offset %d: data after the record", end))
		rec.raw = data
	}
	return rec
}

// decoder decodes one envelope. Its methods take the offset of a value and return
// the offset after it, or -1 with Err set.
type decoder struct {
	jsonscan.Reader
	src    Source
	lambda bool // the input is a Lambda event
	single bool // the input is one record
	page   Page
	parser item.Parser

	ours  bool  // a stream record was seen; then a record of another source fails alone
	start int   // offset of the current record
	noted error // its first mistake

	strings      strings.Builder // memory that the records' strings share
	outer, inner shape           // members of the last record and of its "dynamodb" member
	arn, table   string          // of the last record
}

func (d *decoder) end(i int) (Page, error) {
	if i >= 0 {
		if i = jsonscan.Space(d.B, i); i != len(d.B) {
			d.Fail(i, "data after the batch")
		}
	}
	if d.Err != nil {
		if e, ok := errors.AsType[*EnvelopeError](d.Err); ok {
			return Page{}, e
		}
		return Page{}, &EnvelopeError{Offset: d.Off, Msg: d.Err.Error()}
	}
	return d.page, nil
}

// envelope decodes the object {"Records":[…],…} at i.
func (d *decoder) envelope(i int) int {
	b := d.B
	if i >= len(b) || b[i] != '{' {
		return d.Fail(i, "it is "+jsonscan.LooksLike(b, i)+"; "+d.wanted())
	}
	start := i
	var names []string
	var state []byte
	inWindow := false
	more, i := d.Open(i)
	for more {
		name, v := d.Name(i)
		if v < 0 {
			return v
		}
		switch string(name) {
		case "Records", "NextShardIterator", "state", "isFinalInvokeForWindow":
			if slices.Contains(names, string(name)) {
				return d.Fail(i, "duplicate member "+string(name))
			}
		}
		names = append(names, string(name))
		switch string(name) {
		case "Records":
			i = d.records(v)
		case "NextShardIterator":
			var t []byte
			t, i = d.Text(v, "NextShardIterator")
			d.page.NextShardIterator = string(t)
		case "state":
			if i = d.Skip(v); i >= 0 {
				state, inWindow = b[v:i:i], true
			}
		case "window", "isFinalInvokeForWindow":
			i, inWindow = d.Skip(v), true
		default:
			i = d.Skip(v)
		}
		more, i = d.More(i)
	}
	switch {
	case i < 0:
	case d.page.Records == nil || d.lambda && slices.Contains(names, "NextShardIterator"):
		return d.Fail(start, "it is "+looksLikeObject(names)+"; "+d.wanted())
	case d.lambda && inWindow && state == nil:
		d.page.State = []byte("{}")
	case d.lambda && inWindow:
		d.page.State = state
	}
	return i
}

func (d *decoder) wanted() string {
	if d.lambda {
		return `wanted is {"Records":[…]} from an event source mapping of a DynamoDB stream, or a bare array of its records from EventBridge Pipes`
	}
	return `wanted is the body of a GetRecords answer of DynamoDB Streams, {"Records":[…],"NextShardIterator":…}`
}

// looksLikeObject names an object without records by its members.
func looksLikeObject(names []string) string {
	if len(names) == 0 {
		return "an empty object"
	}
	for _, kind := range []struct{ member, what string }{
		{"DDBStreamBatchInfo", "an on-failure destination record, which holds the position of the records but not the records: read them again from the stream with GetShardIterator AT_SEQUENCE_NUMBER and GetRecords"},
		{"KinesisBatchInfo", "an on-failure destination record of a Kinesis stream"},
		{"NextShardIterator", "a GetRecords API answer: decode it with DecodeGetRecords"},
		{"batchItemFailures", "the answer of a function, not what it is called with"},
		{"dynamodb", "a single stream record: wrap it, as {\"Records\":[…]}, or decode it with DecodeRecord"},
		{"detail-type", "an EventBridge event"},
	} {
		if slices.Contains(names, kind.member) {
			return kind.what
		}
	}
	const most = 8
	if len(names) > most {
		names = append(names[:most:most], "…")
	}
	return "an object with the members " + strings.Join(names, ", ")
}

// foreign describes a record of another event source.
func foreign(source string) string {
	what := map[string]string{
		"aws:kinesis": "of a Kinesis stream (aws:kinesis), whose data would have to be unwrapped first",
		"aws:sqs":     "messages of a queue (aws:sqs), whose bodies would have to be unwrapped first",
		"aws:sns":     "notifications of a topic (aws:sns)",
		"aws:s3":      "notifications of a bucket (aws:s3)",
	}
	return cmp.Or(what[source], "of the event source "+fmt.Sprintf("%.64q", source))
}

// records decodes the array at i.
func (d *decoder) records(i int) int {
	b := d.B
	if b[i] != '[' {
		return d.Fail(i, "Records is not an array but "+jsonscan.LooksLike(b, i))
	}
	recs := []Record{}
	i = jsonscan.Space(b, i+1)
	if i < len(b) && b[i] == ']' {
		d.page.Records = recs
		return i + 1
	}
	for {
		start := i
		if i >= len(b) || b[i] == ',' || b[i] == ']' || b[i] == '}' {
			return d.Fail(i, "a record is expected")
		}
		recs = append(recs, Record{})
		rec := &recs[len(recs)-1]
		if i = d.record(rec, start); i < 0 {
			if _, ok := errors.AsType[*EnvelopeError](d.Err); ok {
				return -1
			}
			if i = jsonscan.Loose(b, start); i < 0 || several(b[start:i]) {
				return -1
			}
			rec.fail(d.failure())
			d.Err = nil
		}
		rec.raw = b[start:i:i]
		if len(recs) == 1 {
			recs = d.expect(recs, i-start, len(b)-i)
		}
		if i < len(b) && b[i] != ',' {
			i = jsonscan.Space(b, i)
		}
		switch {
		case i >= len(b):
			return d.Fail(i, "unexpected end")
		case b[i] == ']':
			d.page.Records = recs
			return i + 1
		case b[i] != ',':
			return d.Fail(i, "missing comma between records")
		}
		i = jsonscan.Space(b, i+1)
	}
}

// several reports whether raw, the text of one undecodable record, reaches into
// the next record. Unbalanced quotes of two records can seem to match.
func several(raw []byte) bool {
	if bytes.Count(raw, []byte(`"SequenceNumber"`)) < 2 {
		return false
	}
	_, msg := jsonscan.Value(raw, 0)
	return msg != ""
}

// mostRecords is the largest AWS batch. It bounds the memory that expect reserves
// after a tiny, certainly invalid first record.
const mostRecords = 10_000

// expect reserves memory for the rest of the page. It estimates the number of
// records from the size of the first.
func (d *decoder) expect(recs []Record, size, rest int) []Record {
	n := rest / (size + 1)
	if n == 0 {
		return recs
	}
	n = min(n+n/8+1, mostRecords)
	d.strings.Reset()
	d.strings.Grow(n * (len(recs[0].EventID) + len(recs[0].Sequence)))
	return slices.Grow(recs, n)
}
