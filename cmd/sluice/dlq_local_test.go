//go:build integration

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/letters"
	"github.com/sluicehq/sluice/internal/localtest"
)

// oncall runs commands on local servers.
type oncall struct {
	t              *testing.T
	dir, table     string
	stdout, stderr strings.Builder
}

func (o *oncall) run(want int, args ...string) string {
	o.t.Helper()
	o.stdout.Reset()
	o.stderr.Reset()
	c := &cli{stdin: strings.NewReader(""), stdout: &o.stdout, stderr: &o.stderr, lookup: func(name string) (string, bool) {
		v, ok := map[string]string{
			"SLUICE_CONFIG": filepath.Join(o.dir, "sluice.yaml"), "SLUICE_ENDPOINT_DYNAMODB": os.Getenv("SLUICE_TEST_DYNAMODB"), "SLUICE_ENDPOINT_SQS": os.Getenv("SLUICE_TEST_SQS"),
			access.LetterKeyEnv: "0123456789abcdef0123456789abcdef",
		}[name]
		return v, ok
	}}
	if code := c.execute(o.t.Context(), args); code != want {
		o.t.Errorf("%q: exit %d, want %d\n%s%s", args, code, want, &o.stdout, &o.stderr)
	}
	return o.stdout.String()
}

func (o *oncall) config(routes string) {
	text := "name: sluice\nsource: {tables: [" + cmp.Or(o.table, "orders") + "], start: LATEST}\nroutes:\n" + routes
	if err := os.WriteFile(filepath.Join(o.dir, "sluice.yaml"), []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

func newOncall(t *testing.T) *oncall {
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
	} {
		t.Setenv(name, value)
	}
	o := &oncall{t: t, dir: t.TempDir()}
	o.config("  - {name: log, on: \"*#*\", redrive: true, log: {}}\n")
	return o
}

// streamOf makes a table, writes items to it and returns their records.
func streamOf(t *testing.T, ids ...string) (recs []sluice.Record) {
	t.Helper()
	cfg := localtest.DynamoDB(t)
	db := dynamodb.NewFromConfig(cfg)
	name, arn := localtest.Streamed(t, "oncall")
	for _, id := range ids {
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}}); err != nil {
			t.Fatal(err)
		}
	}
	streams := dynamodbstreams.NewFromConfig(cfg)
	d, err := streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &arn})
	if err != nil {
		t.Fatal(err)
	}
	shard := d.StreamDescription.Shards[0].ShardId
	it, err := streams.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{StreamArn: &arn, ShardId: shard, ShardIteratorType: "TRIM_HORIZON"})
	if err != nil {
		t.Fatal(err)
	}
	page, err := streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it.ShardIterator})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range page.Records {
		raw := fmt.Sprintf(`{"eventID":%q,"eventName":"INSERT","eventSource":"aws:dynamodb","awsRegion":"us-east-1","eventSourceARN":%q,"dynamodb":{"Keys":{"id":{"S":%q}},"NewImage":{"id":{"S":%[3]q}},"SequenceNumber":%q,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`,
			*r.EventID, arn, ids[i], *r.Dynamodb.SequenceNumber)
		rec := sluice.DecodeRecord([]byte(raw))
		if rec.Err() != nil {
			t.Fatal(rec.Err())
		}
		rec.ShardID = *shard
		recs = append(recs, *rec)
	}
	if len(recs) != len(ids) {
		t.Fatalf("%d records of %d", len(recs), len(ids))
	}
	return recs
}

// Letters in a queue are seen, run again in order, and deleted only when they
// have succeeded; one by reference is read again from the stream.
func TestLettersOfAQueue(t *testing.T) {
	o := newOncall(t)
	api := sqs.NewFromConfig(localtest.SQS(t))
	name := localtest.Name("letters")
	q, err := api.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	send := func(body string) error {
		_, err := api.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: q.QueueUrl, MessageBody: &body})
		return err
	}
	recs := streamOf(t, "a", "b", "c", "d")
	keys := letterKeys(t)
	sender := deadletter.Sender(func(_ context.Context, _ deadletter.Entry, data []byte) error { return send(string(keys.Sign(data))) })
	o.table = recs[0].Table
	o.config("  - {name: log, on: \"*#*\", redrive: true, log: {}}\n")
	byReference := sender.AtMost(16 << 10)
	for i, rec := range recs[:3] {
		rec.ShardID = "" // as under Lambda
		s := sender
		f := sluice.Failure{Route: "log", Attempts: 1, First: errors.New("down"), Last: errors.New("down")}
		switch i {
		case 1: // too large, as far as the limit goes
			e := deadletter.Sender(func(_ context.Context, e deadletter.Entry, _ []byte) error {
				e.Raw = nil
				e.Ref = &deadletter.Reference{Keys: rec.Keys, Bytes: 900_000}
				data, err := e.Append(nil)
				if err != nil {
					return err
				}
				return send(string(keys.Sign(data)))
			})
			s = e
		case 2:
			f.Route = "gone"
			s = byReference
		}
		for range 2 { // a function that was called again parks again
			if err := s.Park(t.Context(), &rec, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := send("no letter"); err != nil {
		t.Fatal(err)
	}
	// A letter made without the key.
	var forged string
	if err := deadletter.Sender(func(_ context.Context, e deadletter.Entry, data []byte) error {
		forged, err = e.ContentID()
		return errors.Join(err, send(string(data)))
	}).Park(t.Context(), &recs[3], sluice.Failure{Route: "log", Attempts: 2, First: errors.New("down"), Last: errors.New("down")}); err != nil {
		t.Fatal(err)
	}

	out := o.run(0, "dlq", "list", "--queue", name)
	if strings.Count(out, "down") != 4 || !strings.Contains(out, "(reference)") || strings.Count(out, "(unsigned)") != 1 || !strings.Contains(o.stderr.String(), "1 messages of the queue are no dead letters") {
		t.Errorf("list: %s%s", out, &o.stderr)
	}
	out = o.run(1, "dlq", "redrive", "--queue", name, "--all")
	if strings.Count(out, "done on log") != 2 || !strings.Contains(out, letters.ShortID(forged)+": refused: it is not signed") || !strings.Contains(out, "is read again") || !strings.Contains(out, `there is no route "gone" any more`) {
		t.Errorf("redrive: %s%s", out, &o.stderr)
	}
	if out = o.run(0, "dlq", "show", "--queue", name, letters.ShortID(forged)); !strings.Contains(out, "it is not signed") {
		t.Errorf("show: %s", out)
	}
	if out = o.run(0, "dlq", "redrive", "--queue", name, "--unsigned", letters.ShortID(forged)); !strings.Contains(out, "1 done") {
		t.Errorf("by its name: %s%s", out, &o.stderr)
	}
	if out = o.run(0, "dlq", "list", "--queue", *q.QueueUrl, "--count"); !strings.Contains(out, "1 in all") {
		t.Errorf("what is left: %s", out)
	}
	o.run(0, "dlq", "purge", "--queue", name, "--route", "gone", "--yes")
	if out = o.run(0, "dlq", "list", "--queue", name); !strings.Contains(out, "no dead letters") {
		t.Errorf("after the purge: %s", out)
	}
	left, err := api.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: q.QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
	if err != nil || len(left.Messages) != 1 || *left.Messages[0].Body != "no letter" {
		t.Errorf("what is not ours: %+v, %v", left, err)
	}
}

// While other receivers hide messages of the queue, they may have earlier letters. A
// redrive refuses, unless order does not matter.
func TestLettersOfAQueueInOtherHands(t *testing.T) {
	o := newOncall(t)
	api := sqs.NewFromConfig(localtest.SQS(t))
	name := localtest.Name("letters")
	q, err := api.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	sender := deadletter.Sender(func(_ context.Context, _ deadletter.Entry, data []byte) error {
		body := string(letterKeys(t).Sign(data))
		_, err := api.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: q.QueueUrl, MessageBody: &body})
		return err
	})
	parked := func(rec sluice.Record) {
		rec.Table = "orders"
		if err := sender.Park(t.Context(), &rec, sluice.Failure{Route: "log", Attempts: 1, First: errors.New("down"), Last: errors.New("down")}); err != nil {
			t.Fatal(err)
		}
	}
	recs := streamOf(t, "a", "b")
	parked(recs[0])
	other, err := api.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: q.QueueUrl, VisibilityTimeout: 600, WaitTimeSeconds: 1})
	if err != nil || len(other.Messages) != 1 {
		t.Fatalf("%+v, %v", other, err)
	}
	parked(recs[1])

	out := o.run(0, "dlq", "list", "--queue", name)
	if strings.Count(out, "down") != 1 || !strings.Contains(o.stderr.String(), "1 messages of the queue are in other hands") {
		t.Errorf("list: %s%s", out, &o.stderr)
	}
	out = o.run(1, "dlq", "redrive", "--queue", name, "--all")
	if out != "" || !strings.Contains(o.stderr.String(), "nothing was run: 1 messages of the queue are in other hands") {
		t.Errorf("redrive: %s%s", out, &o.stderr)
	}
	if out = o.run(0, "dlq", "redrive", "--queue", name, "--all", "--force"); !strings.Contains(out, "1 done") {
		t.Errorf("by force: %s%s", out, &o.stderr)
	}
	if _, err := api.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: q.QueueUrl, ReceiptHandle: other.Messages[0].ReceiptHandle, VisibilityTimeout: 0}); err != nil {
		t.Fatal(err)
	}
	if out = o.run(0, "dlq", "redrive", "--queue", name, "--all"); !strings.Contains(out, "1 done") {
		t.Errorf("given back: %s%s", out, &o.stderr)
	}
}

// An on-failure record of Lambda names records, which are read from the stream.
func TestReplayOnFailureRecords(t *testing.T) {
	o := newOncall(t)
	recs := streamOf(t, "a", "b", "c", "d")
	info := func(first, last int) string {
		data, err := json.Marshal(map[string]any{
			"requestContext": map[string]any{"condition": "RetryAttemptsExhausted"}, "version": "1.0",
			"DDBStreamBatchInfo": map[string]any{"shardId": recs[0].ShardID, "startSequenceNumber": recs[first].Sequence, "endSequenceNumber": recs[last].Sequence,
				"batchSize": last - first + 1, "streamArn": recs[0].StreamARN},
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	lost := strings.Replace(info(0, 0), recs[0].StreamARN, recs[0].StreamARN+"x", 1)
	file, failed := filepath.Join(o.dir, "failures.ndjson"), filepath.Join(o.dir, "failed.ndjson")
	if err := os.WriteFile(file, []byte(info(1, 2)+"\n"+lost+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := o.run(1, "replay", file, "--dry-run")
	if strings.Count(out, ": log\n") != 2 || !strings.Contains(out, `{"id":"b"}`) || !strings.Contains(out, `{"id":"c"}`) {
		t.Errorf("dry run: %s%s", out, &o.stderr)
	}
	out = o.run(1, "replay", file, "--failed", failed)
	if !strings.Contains(out, "2 records, 2 handled") || !strings.Contains(o.stderr.String(), "failures.ndjson:2: ") || !strings.Contains(o.stderr.String(), "does not hold it any more") {
		t.Errorf("%s%s", out, &o.stderr)
	}
	if kept, err := os.ReadFile(failed); err != nil || strings.TrimSpace(string(kept)) != lost {
		t.Errorf("kept: %s, %v", kept, err)
	}
}
