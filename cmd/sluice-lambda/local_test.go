//go:build integration

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/internal/runtimeapi"
)

// The built function, driven by the Runtime API, sends what the example says.
func TestFunction(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "bootstrap")
	if out, err := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	name := "manhunt-" + rand.Text()
	if err := manhunt.Create(t.Context(), localtest.DynamoDB(t), name); err != nil {
		t.Fatal(err)
	}
	table, err := manhunt.Open(localtest.DynamoDB(t), name)
	if err != nil {
		t.Fatal(err)
	}
	queues := sqs.NewFromConfig(localtest.SQS(t))
	created, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the test's own context has ended by now
		db := dynamodb.NewFromConfig(localtest.DynamoDB(t))
		if _, err := db.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Error(err)
		}
		if _, err := queues.DeleteQueue(context.Background(), &sqs.DeleteQueueInput{QueueUrl: created.QueueUrl}); err != nil {
			t.Error(err)
		}
	})

	env := []string{
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local",
		"SLUICE_ENDPOINT_DYNAMODB=" + os.Getenv("SLUICE_TEST_DYNAMODB"), "SLUICE_ENDPOINT_SQS=" + os.Getenv("SLUICE_TEST_SQS"),
		"SLUICE_TABLES=" + name,
	}
	var log bytes.Buffer
	fn, err := runtimeapi.Start(t.Context(), runtimeapi.Command{Path: binary, Env: append(env, "MANHUNT_QUEUE="+*created.QueueUrl), Stdout: &log, Stderr: &log})
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	for _, it := range manhunt.Fixtures()[:4] { // a contact, its methods, an active search
		if err := table.Put(t.Context(), it); err != nil {
			t.Fatal(err)
		}
		pk, _ := it.Lookup("PK")
		sk, _ := it.Lookup("SK")
		rec := recordtest.New(recordtest.Spec{
			Keys: `{"PK":{"S":"` + pk.Str() + `"},"SK":{"S":"` + sk.Str() + `"}}`, New: string(it.Raw()),
		})
		answer, err := fn.Invoke(t.Context(), recordtest.Event(rec), 10*time.Second)
		if err != nil || string(answer.Payload) != `{"batchItemFailures":[]}` {
			t.Fatalf("answer %s, %v\n%s", answer.Payload, err, log.String())
		}
	}
	if _, err := fn.Stop(); err != nil {
		t.Error(err)
	}
	out, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: created.QueueUrl, WaitTimeSeconds: 5, MaxNumberOfMessages: 10})
	if err != nil || len(out.Messages) != 1 {
		t.Fatalf("%d messages, %v; want 1\n%s", len(out.Messages), err, log.String())
	}
	const want = `{"kind":"manhunt.attempt","v":1,"searchId":"a271244","domainId":"db3280c","contactId":"89fa8f8","methodId":"538235b","order":1,"step":0,"notBefore":"2019-12-30T19:32:14Z","dedupeKey":"a271244#0"}`
	if got := aws.ToString(out.Messages[0].Body); got != want {
		t.Errorf("message %s\nwant    %s", got, want)
	}

	log.Reset()
	_, err = runtimeapi.Start(t.Context(), runtimeapi.Command{Path: binary, Env: env, Stdout: &log, Stderr: &log})
	if err == nil || !strings.Contains(log.String(), "sluice-lambda: MANHUNT_QUEUE is not set") {
		t.Errorf("without a queue: %v\n%s", err, log.String())
	}
}
