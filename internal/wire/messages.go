// Package wire decodes what only the sources and commands of Sluice are given.
package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/sluicehq/sluice"
)

const queueSource = "aws:sqs"

// Messages decodes the event of a queue that Lambda hands to a function:
// {"Records":[…]}, each with the eventSource aws:sqs. Anything else is a
// [*sluice.EnvelopeError]. Nothing aliases data.
func Messages(data []byte) ([]sluice.Record, error) {
	var event struct{ Records []json.RawMessage }
	if err := json.Unmarshal(data, &event); err != nil {
		msg := err.Error()
		if bytes.HasPrefix(data, []byte("\uFEFF")) {
			msg = "it is text behind a byte order mark (the bytes EF BB BF), which JSON does not allow: save it as UTF-8 without one"
		}
		return nil, &sluice.EnvelopeError{Msg: "no event of a queue: " + msg}
	}
	if event.Records == nil {
		return nil, &sluice.EnvelopeError{Msg: `no event of a queue: wanted is {"Records":[…]} from an event source mapping of an SQS queue`}
	}
	recs := make([]sluice.Record, len(event.Records))
	for i, raw := range event.Records {
		rec := sluice.DecodeRecord(raw)
		if rec.EventName != sluice.Delivery || rec.Err() != nil && !fromQueue(raw) {
			return nil, &sluice.EnvelopeError{Msg: fmt.Sprintf("record %d is no message of a queue (eventSource %s)", i, queueSource)}
		}
		recs[i] = *rec
	}
	return recs, nil
}

// fromQueue tells a message that cannot be decoded from a stream's record whose
// eventName is that of messages.
func fromQueue(raw []byte) bool {
	var head struct {
		EventSource string `json:"eventSource"`
	}
	return json.Unmarshal(raw, &head) == nil && head.EventSource == queueSource
}
