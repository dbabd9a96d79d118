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

// Reference replaces a record that is too large for the place of its letter. The
// entry has the record's position in the stream, which keeps it for a day. Keys
// identify the item itself.
type Reference struct {
	Keys    sluice.Item // absent if they could not be decoded
	Bytes   int         // of the record as received
	Created time.Time   // zero if unknown
}

// Fetch reads the record of an entry that has only a reference. While the stream
// keeps the record, Fetch returns it. Later it returns the current item, as a
// record with the event name SNAPSHOT. An error that wraps [ErrGone] says that
// both are gone.
type Fetch func(ctx context.Context, e *Entry) (*sluice.Record, error)

// Stands reports whether rec, fetched for e, is the current item and replaces e's
// record. If no route takes rec, that says nothing about the record.
func (e *Entry) Stands(rec *sluice.Record) bool {
	return e.Ref != nil && rec.EventName == sluice.Snapshot && e.EventName != sluice.Snapshot
}

// ErrGone says that neither a record nor its item exists any more.
var ErrGone = errors.New("neither the record nor its item is there any more")

// errTooLarge says that a failure exceeds the size limit of a letter, and that a
// reference cannot replace its record.
var errTooLarge = errors.New("too large for a dead letter")

const (
	kindReference = "reference"

	leastFit  = 16 << 10 // largest letter with a reference
	shortText = 256      // bytes of an error text in a letter that is too large
	mostKeys  = 4 << 10  // a key has at most 3 KiB
	mostRaw   = 64 << 20 // of a compressed record
)

type storedReference struct {
	Keys    json.RawMessage `json:"keys,omitempty"`
	Bytes   int             `json:"bytes"`
	Created time.Time       `json:"created,omitzero"`
}

// Fit is Append with a limit of most bytes. If the letter does not fit, Fit
// compresses the record, then removes details and shortens error texts, and
// finally replaces the record by a reference. It fails for a queue message, which
// exists nowhere else, and for limits below 16 KiB.
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
	// In an undecodable record any field may be long.
	for _, text := range []*string{&s.EventID, &s.EventName, &s.Table, &s.Position.StreamARN, &s.Position.ShardID, &s.Position.Sequence} {
		*text = cut(*text, shortText)
	}
	return s.append(nil)
}

func (f *storedFault) shorten() {
	f.Text, f.Details = cut(f.Text, shortText), nil
}

// AtMost returns a Sender for a place that limits a letter to most bytes. It makes
// larger letters fit; see [Entry.Fit].
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

// record returns the known fields of the record. Its Err says that the record
// itself is missing.
func (r *Reference) record() *sluice.Record {
	rec := sluice.DecodeRecord(nil)
	rec.Keys, rec.Created = r.Keys, r.Created
	return rec
}
