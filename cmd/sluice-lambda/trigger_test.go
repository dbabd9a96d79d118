//go:build integration

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/runtimeapi"
)

// triggered is the bootstrap under the service, with the service's record of its
// invocations.
type triggered struct {
	w    *world
	fn   *runtimeapi.Function // nil while there is no process
	out  *bytes.Buffer        // of that process
	log  *bytes.Buffer
	told string // what processes that have ended wrote to their standard output

	streams []*stream

	invocations, records, settled int // that were answered
}

func (w *world) triggered() *triggered {
	f := &triggered{w: w}
	for _, table := range []string{"orders", "calls", "users", "maps", "points"} {
		f.streams = append(f.streams, w.stream(table))
	}
	return f
}

// round gives the function one batch of each stream, and one of the queue.
func (f *triggered) round() {
	for _, s := range f.streams {
		s.deliver(f)
	}
	f.deliverMessages()
}

// invoke returns the identifiers of an answer; none is an invocation that was not
// answered, because the process was killed.
func (f *triggered) invoke(event []byte, records int) (failures []string, ok bool) {
	t := f.w.t
	t.Helper()
	if f.fn == nil {
		f.out, f.log = new(bytes.Buffer), new(bytes.Buffer)
		fn, err := runtimeapi.Start(t.Context(), runtimeapi.Command{Path: bootstrap, Env: f.w.env, Stdout: f.out, Stderr: f.log})
		if err != nil {
			t.Fatalf("%v\n%s", err, f.log.String())
		}
		f.fn = fn
		f.w.running(func() { _, _ = fn.Kill() })
	}
	answer, err := f.fn.Invoke(t.Context(), event, localtest.Patience)
	if errors.Is(err, runtimeapi.ErrExited) {
		f.end()
		return nil, false
	}
	if err != nil || answer.Failed {
		t.Fatalf("%v %s: %s\n%s", err, answer.ErrorType, answer.Message, f.log.String())
	}
	var a struct {
		BatchItemFailures []struct{ ItemIdentifier string }
	}
	if err := json.Unmarshal(answer.Payload, &a); err != nil {
		t.Fatalf("answer %s: %v", answer.Payload, err)
	}
	for _, one := range a.BatchItemFailures {
		failures = append(failures, one.ItemIdentifier)
	}
	f.invocations++
	f.records += records
	return failures, true
}

// end reads the output of the process.
func (f *triggered) end() {
	if f.fn == nil {
		return
	}
	f.w.running(nil)
	_, _ = f.fn.Kill() // it may be gone
	f.told += f.out.String()
	f.fn = nil
}

// stream is a table's stream, and how far the function has come.
type stream struct {
	w          *world
	arn, shard string
	from, at   string // a shard iterator's type and sequence number
}

func (w *world) stream(table string) *stream {
	w.t.Helper()
	s := &stream{w: w, from: "TRIM_HORIZON"}
	var list struct{ Streams []struct{ StreamArn string } }
	if err := s.call("ListStreams", map[string]any{"TableName": w.name + "-" + table}, &list); err != nil || len(list.Streams) != 1 {
		w.t.Fatalf("streams of %s: %v, %v", table, list, err)
	}
	s.arn = list.Streams[0].StreamArn
	var described struct {
		StreamDescription struct{ Shards []struct{ ShardId string } }
	}
	if err := s.call("DescribeStream", map[string]any{"StreamArn": s.arn}, &described); err != nil || len(described.StreamDescription.Shards) != 1 {
		w.t.Fatalf("shards of %s: %+v, %v", table, described, err)
	}
	s.shard = described.StreamDescription.Shards[0].ShardId
	return s
}

// call asks for answers as they are: the records of an event are almost those.
func (s *stream) call(op string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(s.w.t.Context(), "POST", os.Getenv(localstack.EnvDynamoDB), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "DynamoDBStreams_20120810."+op)
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %d %s", op, resp.StatusCode, answer.String())
	}
	return json.Unmarshal(answer.Bytes(), out)
}

// deliver gives the function the next records, and goes on by its answer as an
// event source mapping with ReportBatchItemFailures does.
func (s *stream) deliver(f *triggered) {
	t := s.w.t
	t.Helper()
	in := map[string]any{"StreamArn": s.arn, "ShardId": s.shard, "ShardIteratorType": s.from}
	if s.at != "" {
		in["SequenceNumber"] = s.at
	}
	var at struct{ ShardIterator string }
	if err := s.call("GetShardIterator", in, &at); err != nil {
		t.Fatal(err)
	}
	var page struct{ Records []map[string]json.RawMessage }
	if err := s.call("GetRecords", map[string]any{"ShardIterator": at.ShardIterator, "Limit": 20}, &page); err != nil {
		if strings.Contains(err.Error(), "TrimmedDataAccess") { // what DynamoDB Local says of a stream without records
			return
		}
		t.Fatal(err)
	}
	if len(page.Records) == 0 {
		return
	}
	var ids []string
	for _, rec := range page.Records {
		rec["eventSourceARN"], _ = json.Marshal(s.arn)
		var change struct{ SequenceNumber string }
		if err := json.Unmarshal(rec["dynamodb"], &change); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, change.SequenceNumber)
	}
	event, err := json.Marshal(page)
	if err != nil {
		t.Fatal(err)
	}
	failures, ok := f.invoke(event, len(ids))
	switch {
	case !ok: // all of it comes again
	case len(failures) == 0:
		s.from, s.at = "AFTER_SEQUENCE_NUMBER", ids[len(ids)-1]
		f.settled += len(ids)
	case len(failures) > 1 || !slices.Contains(ids, failures[0]):
		t.Fatalf("the answer names %q, want one of %q", failures, ids)
	default:
		s.from, s.at = "AT_SEQUENCE_NUMBER", failures[0]
		f.settled += slices.Index(ids, failures[0])
	}
}

// deliverMessages gives the function messages of cascades.
func (f *triggered) deliverMessages() {
	t, url := f.w.t, aws.String(f.w.urls["cascades"])
	t.Helper()
	out, err := f.w.queues.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{
		QueueUrl: url, MaxNumberOfMessages: 10, VisibilityTimeout: 2, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Messages) == 0 {
		return
	}
	var event struct{ Records []json.RawMessage }
	for _, m := range out.Messages {
		one := sluice.Message{ID: *m.MessageId, Body: *m.Body, Received: 1, Attributes: map[string]sluice.MessageAttribute{}}
		for name, a := range m.MessageAttributes {
			one.Attributes[name] = sluice.MessageAttribute{Value: *a.StringValue}
		}
		event.Records = append(event.Records, one.Record("arn:aws:sqs:us-east-1:000000000000:"+f.w.name+"-cascades").Raw())
	}
	data, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	failures, ok := f.invoke(data, len(out.Messages))
	if !ok {
		return
	}
	for _, m := range out.Messages {
		if slices.Contains(failures, *m.MessageId) {
			continue
		}
		f.settled++
		if _, err := f.w.queues.DeleteMessage(t.Context(), &awssqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle}); err != nil {
			t.Fatal(err)
		}
	}
}
