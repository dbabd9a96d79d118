package sluice

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/item"
)

// Message is a queue message, sent or received.
type Message struct {
	// Body is the text of the message. Sluice routes messages whose body is a
	// JSON object with a string "kind".
	Body       string
	Attributes map[string]MessageAttribute

	// Delay is the time for which the queue holds the message back. A delay
	// longer than the queue allows takes several hops: see package message.
	Delay time.Duration

	// GroupID and DeduplicationID are for FIFO queues.
	GroupID, DeduplicationID string

	// ID, Received and Sent describe a received message: its id, the number of
	// receives including this one, and the time it was sent.
	ID       string
	Received int
	Sent     time.Time
}

// MessageAttribute is one typed value beside a message's body.
type MessageAttribute struct {
	Type  string // String (default), Number or Binary, optionally followed by a dot and your own label
	Value string // of a String or Number; not empty
	Bytes []byte // of a Binary; not empty
}

// Kind returns the body's member "kind", or "" when the body is not a JSON object
// with a string "kind".
func (m *Message) Kind() string {
	var head struct {
		Kind string `json:"kind"`
	}
	if json.Unmarshal([]byte(m.Body), &head) != nil {
		return ""
	}
	return head.Kind
}

// queueSource is the eventSource of a message record.
const queueSource = "aws:sqs"

// messageJSON is a message in the form of a Lambda event. Record.Raw of a message
// has the same form, whichever source received it.
type messageJSON struct {
	MessageID         string                   `json:"messageId"`
	ReceiptHandle     string                   `json:"receiptHandle,omitempty"`
	Body              string                   `json:"body"`
	Attributes        map[string]string        `json:"attributes,omitempty"`
	MessageAttributes map[string]attributeJSON `json:"messageAttributes,omitempty"`
	EventSource       string                   `json:"eventSource"`
	EventSourceARN    string                   `json:"eventSourceARN"`
	Region            string                   `json:"awsRegion,omitempty"`
}

type attributeJSON struct {
	StringValue *string `json:"stringValue,omitempty"`
	BinaryValue []byte  `json:"binaryValue,omitempty"`
	DataType    string  `json:"dataType"`
}

// Names of a message's system attributes.
const (
	attrReceived        = "ApproximateReceiveCount"
	attrSent            = "SentTimestamp"
	attrGroup           = "MessageGroupId"
	attrDeduplicationID = "MessageDeduplicationId"
)

// Record returns the message as a record for a router. queue is the ARN of its
// queue. The event is MESSAGE. New is the body as an item, so that filters look up
// "searchId" as in an image. Keys is the message id, or the group of a FIFO queue:
// the unit of order. Err is set if the body is not a JSON object.
func (m *Message) Record(queue string) *Record {
	j := messageJSON{
		MessageID: m.ID, Body: m.Body, EventSource: queueSource, EventSourceARN: queue,
		Attributes: map[string]string{attrReceived: strconv.Itoa(m.Received)},
	}
	if !m.Sent.IsZero() {
		j.Attributes[attrSent] = strconv.FormatInt(m.Sent.UnixMilli(), 10)
	}
	if m.GroupID != "" {
		j.Attributes[attrGroup] = m.GroupID
	}
	if m.DeduplicationID != "" {
		j.Attributes[attrDeduplicationID] = m.DeduplicationID
	}
	for name, a := range m.Attributes {
		if j.MessageAttributes == nil {
			j.MessageAttributes = make(map[string]attributeJSON, len(m.Attributes))
		}
		v := attributeJSON{DataType: cmp.Or(a.Type, "String"), BinaryValue: a.Bytes}
		if a.Bytes == nil {
			v.StringValue = &a.Value
		}
		j.MessageAttributes[name] = v
	}
	raw, err := json.Marshal(j)
	if err != nil {
		raw = []byte("{}") // a struct of strings and bytes never fails
	}
	return j.record(raw)
}

// record returns the message as a record; raw is its text.
func (j *messageJSON) record(raw []byte) *Record {
	rec := &Record{
		EventID: j.MessageID, EventName: Delivery, Table: queueName(j.EventSourceARN), StreamARN: j.EventSourceARN,
		Region: j.Region, SizeBytes: len(j.Body), raw: raw,
	}
	if ms, err := strconv.ParseInt(j.Attributes[attrSent], 10, 64); err == nil {
		rec.Created = time.UnixMilli(ms).UTC()
	}
	name, key := "messageId", j.MessageID
	if group := j.Attributes[attrGroup]; group != "" {
		name, key = "messageGroupId", group
	}
	if j.MessageID == "" {
		rec.fail(fmt.Errorf("message of queue %s has no messageId", rec.Table))
		return rec
	}
	rec.Keys = item.Of(item.String(name, key))
	it, err := item.FromJSON([]byte(j.Body))
	if err != nil {
		rec.fail(fmt.Errorf("body of message %s of queue %s: %w", j.MessageID, rec.Table, err))
		return rec
	}
	rec.New = it
	return rec
}

// Message returns the message of a record; false for a table's record.
func (r *Record) Message() (Message, bool) {
	if r.EventName != Delivery {
		return Message{}, false
	}
	var j messageJSON
	if json.Unmarshal(r.raw, &j) != nil {
		return Message{}, false
	}
	m := Message{
		Body: j.Body, ID: j.MessageID, Sent: r.Created,
		GroupID: j.Attributes[attrGroup], DeduplicationID: j.Attributes[attrDeduplicationID],
	}
	m.Received, _ = strconv.Atoi(j.Attributes[attrReceived]) // 0 when unknown
	for name, a := range j.MessageAttributes {
		if m.Attributes == nil {
			m.Attributes = make(map[string]MessageAttribute, len(j.MessageAttributes))
		}
		v := MessageAttribute{Type: a.DataType, Bytes: a.BinaryValue}
		if a.StringValue != nil {
			v.Value = *a.StringValue
		}
		m.Attributes[name] = v
	}
	return m, true
}

// queued decodes the text of a message; false when data is not a message.
func queued(data []byte) (*messageJSON, bool) {
	if !bytes.Contains(data, []byte(`"`+queueSource+`"`)) {
		return nil, false
	}
	j := new(messageJSON)
	if err := json.Unmarshal(data, j); err != nil || j.EventSource != queueSource {
		return nil, false
	}
	return j, true
}

// queueName is the last part of a queue's ARN.
func queueName(arn string) string { return arn[strings.LastIndexByte(arn, ':')+1:] }
