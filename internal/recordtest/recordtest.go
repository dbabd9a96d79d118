// Package recordtest builds stream records for tests.
package recordtest

import (
	"cmp"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// ARN is the stream of a Spec that names none; its table is "test".
const ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/test/stream/2024-01-01T00:00:00.000"

// Spec describes a record. The zero Spec is an INSERT of the item "a".
type Spec struct {
	Event    sluice.EventName // default by the images: INSERT, MODIFY or REMOVE
	Keys     string           // attribute map; default {"pk":{"S":"a"}}
	Old, New string           // attribute maps; absent when empty
	Sequence sluice.Sequence  // default: the next one of [Sequence]
	ID       string           // default "id-" and the sequence number
	ARN      string           // default ARN
	Region   string           // default us-east-1
	Shard    string           // default none, as under Lambda
	Created  time.Time        // default 2024-01-02T03:04:05Z
	ViewType string           // default NEW_AND_OLD_IMAGES
	TTL      bool             // deleted by time to live
	Size     int              // SizeBytes; default the length of the images
}

var last atomic.Int64

// Sequence returns the nth sequence number of a stream; empty for 0. Like those of
// AWS it is long, and its width grows: from 27 digits to 28 with the tenth.
func Sequence(n int) sluice.Sequence {
	if n == 0 {
		return ""
	}
	high := 9_999_999
	if n >= 10 {
		high = 10_000_000
	}
	return sluice.Sequence(fmt.Sprintf("%d%020d", high, low+n))
}

const low = 2_395_190_001_559_217 // of numbers that AWS has given out

// Nth returns the n of what Sequence returned. It panics on other numbers.
func Nth[S ~string](seq S) int {
	n := 0
	if len(seq) > 20 {
		n, _ = strconv.Atoi(string(seq[len(seq)-20:]))
		n -= low
	}
	if S(Sequence(n)) != seq {
		panic(fmt.Sprintf("%q was not made by recordtest.Sequence", string(seq)))
	}
	return n
}

// New returns the record that s describes, decoded from JSON like a source's; it
// shares no memory with others. It panics if s is not a valid record.
func New(s Spec) sluice.Record {
	page, err := sluice.DecodeGetRecords(fmt.Appendf(nil, `{"Records":[%s]}`, JSON(s)), sluice.Source{ShardID: s.Shard})
	if err != nil {
		panic(err)
	}
	rec := page.Records[0]
	if rec.Err() != nil {
		panic(rec.Err())
	}
	return rec
}

// JSON returns the record that s describes as a Lambda event holds it. It may
// be invalid if s is.
func JSON(s Spec) []byte {
	if s.Event == "" {
		s.Event = sluice.Insert
		if s.Old != "" {
			s.Event = sluice.Modify
			if s.New == "" {
				s.Event = sluice.Remove
			}
		}
	}
	s.Keys = cmp.Or(s.Keys, `{"pk":{"S":"a"}}`)
	if s.Sequence == "" {
		s.Sequence = Sequence(int(last.Add(1)))
	}
	s.ID = cmp.Or(s.ID, "id-"+string(s.Sequence))
	s.ARN = cmp.Or(s.ARN, ARN)
	s.Region = cmp.Or(s.Region, "us-east-1")
	if s.Created.IsZero() {
		s.Created = time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	}
	s.ViewType = cmp.Or(s.ViewType, "NEW_AND_OLD_IMAGES")
	s.Size = cmp.Or(s.Size, len(s.Keys)+len(s.Old)+len(s.New))
	return Encode(s)
}

// Encode is JSON without defaults: a zero Sequence or Created is left out.
func Encode(s Spec) []byte {
	b := fmt.Appendf(nil, `{"eventID":%s,"eventName":%q,"eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":%q,`, quote(s.ID), s.Event, s.Region)
	if s.TTL {
		b = append(b, `"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},`...)
	}
	b = append(b, `"dynamodb":{`...)
	if !s.Created.IsZero() {
		b = fmt.Appendf(b, `"ApproximateCreationDateTime":%d`, s.Created.Unix())
		if nanos := s.Created.Nanosecond(); nanos > 0 { // the service writes whole seconds without a point
			b = fmt.Appendf(b, ".%09d", nanos)
		}
		b = append(b, ',')
	}
	b = fmt.Appendf(b, `"Keys":%s,`, s.Keys)
	if s.New != "" {
		b = fmt.Appendf(b, `"NewImage":%s,`, s.New)
	}
	if s.Old != "" {
		b = fmt.Appendf(b, `"OldImage":%s,`, s.Old)
	}
	if s.Sequence != "" {
		b = fmt.Appendf(b, `"SequenceNumber":%s,`, quote(string(s.Sequence)))
	}
	return fmt.Appendf(b, `"SizeBytes":%d,"StreamViewType":%q},"eventSourceARN":%s}`, s.Size, s.ViewType, quote(s.ARN))
}

func quote(s string) []byte { return item.AppendString(nil, s) }

// Event returns a Lambda event that holds the records, as they came.
func Event(recs ...sluice.Record) []byte {
	out := []byte(`{"Records":[`)
	for i := range recs {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, recs[i].Raw()...)
	}
	return append(out, "]}"...)
}
