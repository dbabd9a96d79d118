package deadletter

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// Reference stands in an entry for a record that was too large for where its
// letter is kept. The entry says where in the stream it was, which forgets it a
// day after it was written; the item itself can be read by Keys.
type Reference struct {
	Keys    sluice.Item // absent when they could not be decoded
	Bytes   int         // of the record as it came
	Created time.Time   // zero when it is not known
}

// Fetch reads again what an entry has by reference only: the record, while its
// stream holds it; or else the item as it is now, as a record with the event
// name SNAPSHOT. An error that wraps [ErrGone] says that there is neither.
type Fetch func(ctx context.Context, e *Entry) (*sluice.Record, error)

// Stands reports whether rec, which was fetched for e, is the item as it is now and
// stands in place of e's record. That no route takes it says nothing of the record.
func (e *Entry) Stands(rec *sluice.Record) bool {
	return e.Ref != nil && rec.EventName == sluice.Snapshot && e.EventName != sluice.Snapshot
}

// ErrGone says that neither a record nor its item is there any more.
var ErrGone = errors.New("neither the record nor its item is there any more")

// errTooLarge says that a failure cannot be parked where a letter may not have
// as many bytes, nor by reference: nothing would be left of it.
var errTooLarge = errors.New("too large for a dead letter")

const (
	kindReference = "reference"

	leastFit  = 16 << 10 // bytes of a letter by reference at most, whatever failed
	shortText = 256      // bytes of an error's text in a letter that is short of room
	mostKeys  = 4 << 10  // a key has 3 KiB at most
	mostRaw   = 64 << 20 // of a record that was compressed
)

type storedReference struct {
	Keys    json.RawMessage `json:"keys,omitempty"`
	Bytes   int             `json:"bytes"`
	Created time.Time       `json:"created,omitzero"`
}

// Fit is Append for where a letter may have at most so many bytes. What does not
// fit is compressed, then loses the details and the ends of its errors' texts,
// and at last has its record by reference. Fit fails for a message of a queue, which has no
// other place than the queue, and for limits below 16 KiB.
func (e *Entry) Fit(most int) ([]byte, error) {
	data, err := e.Append(nil)
	if err != nil || len(data) <= most {
		return data, err
	}
	s := e.stored()
	if e.Gap == nil && e.Ref == nil {
		if s.Gzip, err = pack(e.Raw); err != nil {
			return nil, fmt.Errorf("dead letter %s: %w", e.ID, err)
		}
		s.Version, s.Record, s.Base64 = 3, nil, nil
		if data, err = s.append(nil); err != nil || len(data) <= most {
			return data, err
		}
	}
	s.First.shorten()
	s.Last.shorten()
	if data, err = s.append(nil); err != nil || len(data) <= most {
		return data, err
	}
	if e.EventName == sluice.Delivery || most < leastFit {
		return nil, fmt.Errorf("dead letter %s: %w: at most %d bytes may be sent, and it has %d compressed", e.ID, errTooLarge, most, len(data))
	}
	if e.Gap == nil && e.Ref == nil {
		rec := e.Record()
		s.Gzip, s.Kind = nil, kindReference
		s.Reference = &storedReference{Bytes: len(e.Raw), Created: rec.Created}
		if raw := rec.Keys.Raw(); len(raw) <= mostKeys {
			s.Reference.Keys = raw
		}
	}
	// Of what could not be decoded anything may be as long.
	for _, text := range []*string{&s.EventID, &s.EventName, &s.Table, &s.Position.StreamARN, &s.Position.ShardID, &s.Position.Sequence} {
		*text = cut(*text, shortText)
	}
	return s.append(nil)
}

func (f *storedFault) shorten() {
	f.Text, f.Details = cut(f.Text, shortText), nil
}

// AtMost is s for a place that takes so many bytes of one letter: what is larger
// is made to fit, see [Entry.Fit].
func (s Sender) AtMost(most int) Sender {
	return func(ctx context.Context, e Entry, data []byte) error {
		if len(data) > most {
			var err error
			if data, err = e.Fit(most); err != nil {
				return err
			}
		}
		return s(ctx, e, data)
	}
}

func pack(raw []byte) ([]byte, error) {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	_, err := z.Write(raw)
	err = errors.Join(err, z.Close())
	return buf.Bytes(), err
}

func unpack(data []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(z, mostRaw+1))
	if err == nil && len(raw) > mostRaw {
		err = fmt.Errorf("the record has more than %d bytes", mostRaw)
	}
	return raw, err
}

func (s *storedReference) reference() (*Reference, error) {
	r := &Reference{Bytes: s.Bytes, Created: s.Created}
	if s.Keys != nil {
		keys, err := item.Parse(s.Keys)
		if err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
		r.Keys = keys
	}
	return r, nil
}

// record is what is known of the record without reading it again. Its Err says
// that it is not here.
func (r *Reference) record() *sluice.Record {
	rec := sluice.DecodeRecord(nil)
	rec.Keys, rec.Created = r.Keys, r.Created
	return rec
}
