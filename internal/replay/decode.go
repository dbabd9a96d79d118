package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/reread"
	"github.com/sluicehq/sluice/internal/wire"
)

// Letter is a dead letter of the input.
type Letter struct {
	Record *sluice.Record
	Route  string // empty: for all
}

// batch is records that are for one route, or for all.
type batch struct {
	records []sluice.Record
	route   string
	letter  bool
}

// envelope is what tells the kinds of values apart.
type envelope struct {
	Records  json.RawMessage
	DynamoDB *struct {
		StreamARN string `json:"streamArn"`
		ShardID   string `json:"shardId"`
		First     string `json:"startSequenceNumber"`
		Last      string `json:"endSequenceNumber"`
	} `json:"DDBStreamBatchInfo"`
	Kinesis json.RawMessage `json:"KinesisBatchInfo"`
	Payload json.RawMessage `json:"payload"`

	Type     string // of SNS: Notification
	Message  string
	Messages []struct{ Body string } // of an answer of ReceiveMessage
}

// decoder makes batches of values.
type decoder struct {
	letter func([]byte) (Letter, bool, error)
	reread func(context.Context, reread.Range, func([]sluice.Record) error) error
	emit   func(batch) error
}

// emitError is emit's own: it is not the value's fault.
type emitError struct{ error }

func (e *emitError) Unwrap() error { return e.error }

func (d *decoder) send(b batch) error {
	if len(b.records) == 0 {
		return nil
	}
	for i := range b.records {
		b.records[i].Origin = sluice.Replayed
		if b.letter {
			b.records[i].Origin = sluice.Redriven
		}
	}
	if err := d.emit(b); err != nil {
		return &emitError{err}
	}
	return nil
}

// mostNested is how many envelopes may be in one another: a topic's in a queue's
// answer.
const mostNested = 4

func (d *decoder) value(ctx context.Context, text []byte, depth int) error {
	if depth > mostNested {
		return errors.New("too many envelopes in one another")
	}
	if d.letter != nil {
		switch l, ok, err := d.letter(text); {
		case err != nil:
			return err
		case ok:
			return d.send(batch{records: []sluice.Record{*l.Record}, route: l.Route, letter: true})
		}
	}
	var e envelope
	if text[0] == '{' {
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf("it is none of the kinds that can be replayed: %w", err)
		}
	}
	switch {
	case text[0] != '[' && text[0] != '{':
		return errors.New("it is no object: want a record, an event, an on-failure record or a dead letter")
	case e.Kinesis != nil:
		return errors.New("it is an on-failure record of a Kinesis stream, and only streams of DynamoDB can be read")
	case e.Payload != nil && (e.DynamoDB != nil || bytes.Contains(text, []byte(`"requestContext"`))):
		return d.payload(ctx, e.Payload, depth)
	case e.DynamoDB != nil:
		return d.onFailure(ctx, reread.Range{StreamARN: e.DynamoDB.StreamARN, ShardID: e.DynamoDB.ShardID, First: sluice.Sequence(e.DynamoDB.First), Last: sluice.Sequence(e.DynamoDB.Last)})
	case e.Type == "Notification" && e.Message != "":
		return d.inner(ctx, []byte(e.Message), depth)
	case e.Messages != nil:
		for i, m := range e.Messages {
			if err := d.inner(ctx, []byte(m.Body), depth); err != nil {
				return fmt.Errorf("message %d: %w", i+1, err)
			}
		}
		return nil
	case text[0] == '[' || e.Records != nil:
		return d.event(text)
	}
	rec := sluice.DecodeRecord(text)
	if err := rec.Err(); err != nil && rec.EventID == "" && !rec.Sequence.Valid() {
		return err // nothing tells that it is a record at all
	}
	return d.send(batch{records: []sluice.Record{*rec}})
}

func (d *decoder) inner(ctx context.Context, text []byte, depth int) error {
	if text = bytes.TrimSpace(text); !json.Valid(text) {
		return errors.New("what the envelope holds is no JSON")
	}
	return d.value(ctx, text, depth+1)
}

// payload is the event that failed, as the form for S3 has it: whole, or as text.
func (d *decoder) payload(ctx context.Context, data json.RawMessage, depth int) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return d.inner(ctx, []byte(text), depth)
	}
	return d.inner(ctx, data, depth)
}

func (d *decoder) event(text []byte) error {
	recs, err := wire.Event(text)
	if err != nil {
		return err
	}
	return d.send(batch{records: recs})
}

// onFailure reads the records of a batch that failed.
func (d *decoder) onFailure(ctx context.Context, rng reread.Range) error {
	if rng.StreamARN == "" || rng.ShardID == "" || !rng.First.Valid() || !rng.Last.Valid() {
		return errors.New("its DDBStreamBatchInfo lacks stream, shard or sequence numbers")
	}
	if d.reread == nil {
		return errors.New("it names records of a stream, which cannot be read here")
	}
	return d.reread(ctx, rng, func(recs []sluice.Record) error {
		return d.send(batch{records: recs})
	})
}
