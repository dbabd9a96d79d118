// Package wire decodes what only the sources and commands of Sluice are given.
package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/sluicehq/sluice"
)

const queueSource = "aws:sqs"

// Event decodes an event of a stream or of a queue. Records of a stream alias data.
func Event(data []byte) ([]sluice.Record, error) {
	if OfQueue(data) {
		return Messages(data)
	}
	page, err := sluice.DecodeEvent(data)
	return page.Records, err
}

// OfQueue reports whether an event is from a queue, by its first record.
func OfQueue(data []byte) bool {
	if !bytes.Contains(data, []byte(`"`+queueSource+`"`)) { // quick, and rarely wrong
		return false
	}
	var event struct{ Records []source }
	return json.Unmarshal(data, &event) == nil && len(event.Records) > 0 && event.Records[0].EventSource == queueSource
}

type source struct {
	EventSource string `json:"eventSource"`
}

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
	var head source
	return json.Unmarshal(raw, &head) == nil && head.EventSource == queueSource
}
