package streamtest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
)

// Insert returns the record of a new item. It is decoded from JSON like a
// source's, and shares no memory with other records.
//
// table is a table's name or the ARN of its stream. An image has any form that
// [Table.Put] accepts: DynamoDB JSON or plain Go values. The key attributes are
// pk, PK or id, the first that the item has, with sk or SK if present; see
// [WithKeys]. By default the record was made now, to the second. Its sequence
// number is greater than that of every earlier record. Its stream has both images.
// It has no shard, as under Lambda.
//
// Like all functions that make records, Insert panics if a stream could not hold
// the record.
func Insert(table string, new any, opts ...RecordOption) sluice.Record {
	return build("Insert", sluice.Insert, table, nil, new, opts)
}

// Modify returns the record of a changed item; see [Insert].
func Modify(table string, old, new any, opts ...RecordOption) sluice.Record {
	return build("Modify", sluice.Modify, table, old, new, opts)
}

// Remove returns the record of a deleted item; see [Insert].
func Remove(table string, old any, opts ...RecordOption) sluice.Record {
	return build("Remove", sluice.Remove, table, old, nil, opts)
}

// Expire returns the record of an item that DynamoDB deleted because its time to
// live expired; see [Insert].
func Expire(table string, old any, opts ...RecordOption) sluice.Record {
	byTTL := func(s *recordSpec) { s.ttl = true }
	return build("Expire", sluice.Remove, table, old, nil, append([]RecordOption{byTTL}, opts...))
}

// Snapshot returns the record of a backfilled item, with Origin Backfilled and
// without a sequence number; see [Insert].
func Snapshot(table string, it any, opts ...RecordOption) sluice.Record {
	return build("Snapshot", sluice.Snapshot, table, nil, it, append([]RecordOption{WithOrigin(sluice.Backfilled)}, opts...))
}

// RecordOption changes one property of a record.
type RecordOption func(*recordSpec)

// recordSpec describes a record to make.
type recordSpec struct {
	event    sluice.EventName
	keys     []string
	sequence sluice.Sequence
	created  time.Time
	origin   sluice.Origin
	view     item.View
	ttl      bool
}

// WithKeys names the key attributes.
func WithKeys(partition string, sort ...string) RecordOption {
	return func(s *recordSpec) { s.keys = append([]string{partition}, sort...) }
}

// WithSequence sets the sequence number.
func WithSequence(n sluice.Sequence) RecordOption {
	return func(s *recordSpec) { s.sequence = n }
}

// WithTime sets the time of the change; the zero time omits it.
func WithTime(t time.Time) RecordOption { return func(s *recordSpec) { s.created = t } }

// WithOrigin sets the origin, such as redriven.
func WithOrigin(o sluice.Origin) RecordOption { return func(s *recordSpec) { s.origin = o } }

// WithView sets the view type of the stream. The record lacks images that the view
// lacks.
func WithView(v item.View) RecordOption { return func(s *recordSpec) { s.view = v } }

// Item converts v, in any form that [Table.Put] accepts, to an item as in a
// stream. It shares no memory with v, and panics if v is not an item.
func Item(v any) sluice.Item {
	it, err := stored(v)
	if err != nil {
		panic("streamtest: Item: " + err.Error())
	}
	return it
}

// Event returns a Lambda event with these records, which this package made or a
// source decoded.
func Event(recs ...sluice.Record) []byte {
	for i := range recs {
		if recs[i].Raw() == nil {
			panic(fmt.Sprintf("streamtest: Event: record %d was not decoded from JSON; make it with Insert, Modify, Remove or Expire", i))
		}
	}
	return recordtest.Event(recs...)
}

// records counts the records made.
var records atomic.Uint64

func build(caller string, event sluice.EventName, table string, old, new any, opts []RecordOption) sluice.Record {
	s := recordSpec{event: event, view: item.BothImages, created: time.Now().Truncate(time.Second)}
	nth := records.Add(1) - 1
	if event != sluice.Snapshot {
		s.sequence = recordtest.Sequence(int(nth) + 1)
	}
	for _, o := range opts {
		o(&s)
	}
	rec, err := s.make(table, old, new, nth)
	if err != nil {
		panic(fmt.Sprintf("streamtest: %s(%q): %v", caller, table, err))
	}
	return rec
}

func (s *recordSpec) make(table string, old, new any, nth uint64) (rec sluice.Record, err error) {
	var oldImage, newImage sluice.Item
	if old != nil {
		if oldImage, err = stored(old); err != nil {
			return rec, fmt.Errorf("old image: %w", err)
		}
	}
	if new != nil {
		if newImage, err = stored(new); err != nil {
			return rec, fmt.Errorf("new image: %w", err)
		}
	}
	if want := s.event != sluice.Insert && s.event != sluice.Snapshot; oldImage.Exists() != want {
		return rec, errors.New("no item was given that was there before")
	}
	if want := s.event != sluice.Remove; newImage.Exists() != want {
		return rec, errors.New("no item was given that is there now")
	}
	keys, err := s.keysOf(oldImage, newImage)
	if err != nil {
		return rec, err
	}
	if !s.view.Has(item.OldImage) {
		oldImage = sluice.Item{}
	}
	if !s.view.Has(item.NewImage) {
		newImage = sluice.Item{}
	}
	arn, region, err := streamOf(table)
	if err != nil {
		return rec, err
	}
	text := recordtest.Encode(recordtest.Spec{
		Event: s.event, Keys: string(keys.Raw()), Old: string(oldImage.Raw()), New: string(newImage.Raw()), Sequence: s.sequence,
		ID: fmt.Sprintf("%032x", nth), ARN: arn, Region: region, Created: s.created, ViewType: s.view.String(), TTL: s.ttl,
		Size: sizeOf(keys) + sizeOf(oldImage) + sizeOf(newImage),
	})
	if s.event == sluice.Snapshot {
		rec = *sluice.DecodeRecord(text)
	} else {
		page, err := sluice.DecodeGetRecords(fmt.Appendf(nil, `{"Records":[%s]}`, text), sluice.Source{StreamARN: arn})
		if err != nil {
			return rec, err
		}
		rec = page.Records[0]
	}
	rec.Origin = s.origin
	return rec, rec.Err()
}

// keysOf returns the key attributes, which are equal in both images.
func (s *recordSpec) keysOf(old, new sluice.Item) (sluice.Item, error) {
	is := new
	if !new.Exists() {
		is = old
	}
	names := s.keys
	if names == nil {
		for _, key := range [][]string{{"pk", "sk"}, {"PK", "SK"}, {"id"}} {
			if _, ok := attribute(is, key[0]); !ok {
				continue
			}
			names = key[:1]
			if len(key) > 1 {
				if _, ok := attribute(is, key[1]); ok {
					names = key
				}
			}
			break
		}
		if names == nil {
			return sluice.Item{}, errors.New("the item has no attribute pk, PK or id: name its key attributes with WithKeys")
		}
	}
	for _, name := range names {
		v, ok := attribute(is, name)
		if !ok {
			return sluice.Item{}, fmt.Errorf("the item has no key attribute %q", name)
		}
		if old.Exists() && new.Exists() {
			if was, ok := attribute(old, name); !ok || !was.Equal(v) {
				return sluice.Item{}, fmt.Errorf("key attribute %q differs between the images; a key never changes", name)
			}
		}
	}
	return is.Only(names...), nil
}

// streamOf returns the ARN and the Region of a table's stream.
func streamOf(table string) (arn, region string, err error) {
	if !strings.HasPrefix(table, "arn:") {
		if table == "" || strings.ContainsAny(table, ":/") {
			return "", "", errors.New("want a table's name or a stream's ARN")
		}
		return "arn:aws:dynamodb:" + serviceRegion + ":" + serviceAccount + ":table/" + table + "/stream/2024-01-01T00:00:00.000", serviceRegion, nil
	}
	parts := strings.SplitN(table, ":", 6)
	if len(parts) < 6 || parts[3] == "" || !strings.HasPrefix(parts[5], "table/") || !strings.Contains(parts[5], "/stream/") {
		return "", "", errors.New("not the ARN of a stream, such as arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2024-01-01T00:00:00.000")
	}
	return table, parts[3], nil
}
