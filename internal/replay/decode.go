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

// runError is not the value's fault.
type runError struct{ error }

func (e *runError) Unwrap() error { return e.error }

// send hands a batch to its flow.
func (r *replayer) send(ctx context.Context, b batch) error {
	if len(b.records) == 0 {
		return nil
	}
	for i := range b.records {
		b.records[i].Origin = sluice.Replayed
		if b.letter {
			b.records[i].Origin = sluice.Redriven
		}
	}
	f := r.flow(b)
	r.add(&r.p.Records, len(b.records))
	last, err := f.Submit(ctx, b.records...)
	if err != nil {
		return &runError{err}
	}
	r.marks = append(r.marks, mark{flow: f, ordinal: last})
	return nil
}

// mostNested is how many envelopes may be in one another: a topic's in a queue's
// answer.
const mostNested = 4

// value makes batches of a value.
func (r *replayer) value(ctx context.Context, text []byte, depth int) error {
	if depth > mostNested {
		return errors.New("too many envelopes in one another")
	}
	if r.o.Letter != nil {
		switch l, ok, err := r.o.Letter(text); {
		case err != nil:
			return err
		case ok:
			return r.send(ctx, batch{records: []sluice.Record{*l.Record}, route: l.Route, letter: true})
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
		return r.payload(ctx, e.Payload, depth)
	case e.DynamoDB != nil:
		return r.onFailure(ctx, reread.Range{StreamARN: e.DynamoDB.StreamARN, ShardID: e.DynamoDB.ShardID, First: sluice.Sequence(e.DynamoDB.First), Last: sluice.Sequence(e.DynamoDB.Last)})
	case e.Type == "Notification" && e.Message != "":
		return r.inner(ctx, []byte(e.Message), depth)
	case e.Messages != nil:
		for i, m := range e.Messages {
			if err := r.inner(ctx, []byte(m.Body), depth); err != nil {
				return fmt.Errorf("message %d: %w", i+1, err)
			}
		}
		return nil
	case text[0] == '[' || e.Records != nil:
		recs, err := wire.Event(text)
		if err != nil {
			return err
		}
		return r.send(ctx, batch{records: recs})
	}
	rec := sluice.DecodeRecord(text)
	if err := rec.Err(); err != nil && rec.EventID == "" && !rec.Sequence.Valid() {
		return err // nothing tells that it is a record at all
	}
	return r.send(ctx, batch{records: []sluice.Record{*rec}})
}

func (r *replayer) inner(ctx context.Context, text []byte, depth int) error {
	if text = bytes.TrimSpace(text); !json.Valid(text) {
		return errors.New("what the envelope holds is no JSON")
	}
	return r.value(ctx, text, depth+1)
}

// payload is the event that failed, as the form for S3 has it: whole, or as text.
func (r *replayer) payload(ctx context.Context, data json.RawMessage, depth int) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return r.inner(ctx, []byte(text), depth)
	}
	return r.inner(ctx, data, depth)
}

// onFailure reads the records of a batch that failed.
func (r *replayer) onFailure(ctx context.Context, rng reread.Range) error {
	if rng.StreamARN == "" || rng.ShardID == "" || !rng.First.Valid() || !rng.Last.Valid() {
		return errors.New("its DDBStreamBatchInfo lacks stream, shard or sequence numbers")
	}
	if r.o.Reread == nil {
		return errors.New("it names records of a stream, which cannot be read here")
	}
	return r.o.Reread(ctx, rng, func(recs []sluice.Record) error {
		return r.send(ctx, batch{records: recs})
	})
}
