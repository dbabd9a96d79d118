//go:build integration

package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/run"
)

// TestDaemon runs the program as a daemon: what is written to the table comes
// out of the queue.
func TestDaemon(t *testing.T) {
	db, q := localtest.DynamoDB(t), localtest.SQS(t)
	name := localtest.Name("manhunt")
	if err := manhunt.Create(t.Context(), db, name); err != nil {
		t.Fatal(err)
	}
	store, err := manhunt.Open(db, name)
	if err != nil {
		t.Fatal(err)
	}
	queue := sqs.NewFromConfig(q)
	made, err := queue.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := queue.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name + "-watch")})
	if err != nil {
		t.Fatal(err)
	}

	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	env := map[string]string{
		"MANHUNT_QUEUE":            *made.QueueUrl,
		"MANHUNT_WATCH_QUEUE":      *watch.QueueUrl,
		"SLUICE_ENDPOINT_DYNAMODB": *db.BaseEndpoint,
		"SLUICE_ENDPOINT_SQS":      *q.BaseEndpoint,
	}
	stop := daemon(t, name, env)
	for _, it := range manhunt.Fixtures() {
		if err := store.Put(t.Context(), it); err != nil {
			t.Fatal(err)
		}
	}
	var keys []string
	localtest.Await(t, "two messages", func() string {
		out, err := queue.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: made.QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 20})
		if err != nil {
			return err.Error()
		}
		for _, m := range out.Messages {
			_, key, _ := strings.Cut(*m.Body, `"dedupeKey":`)
			keys = append(keys, key)
		}
		if len(keys) < 2 {
			return fmt.Sprintf("received %q", keys)
		}
		return ""
	})
	slices.Sort(keys)
	if got := strings.Join(keys, " "); got != `"a271244#0"} "a271244#1"}` {
		t.Errorf("received %s", got)
	}
	stop()
}

// daemon runs the program until stop is called or the test ends. stop returns
// its log.
func daemon(t *testing.T, table string, env map[string]string) (stop func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	exit := make(chan int, 1)
	var log bytes.Buffer
	args := []string{"--table", table, "--start", "TRIM_HORIZON", "--listen", "off", "--state", filepath.Join(t.TempDir(), "state.db")}
	go func() {
		exit <- run.Run(ctx, app(time.Now), args, func(name string) string { return env[name] }, &log, &log)
	}()
	stop = sync.OnceValue(func() string {
		cancel()
		if code := <-exit; code != 0 || t.Failed() {
			t.Errorf("exit %d, log:\n%s", code, log.String())
		}
		return log.String()
	})
	t.Cleanup(func() { stop() })
	return stop
}

// TestDaemonConsumes runs the program on its queue, too: the steps of a search
// are tried, up to the one that is to wait.
func TestDaemonConsumes(t *testing.T) {
	db, q := localtest.DynamoDB(t), localtest.SQS(t)
	name := localtest.Name("manhunt")
	if err := manhunt.Create(t.Context(), db, name); err != nil {
		t.Fatal(err)
	}
	table, err := manhunt.Open(db, name)
	if err != nil {
		t.Fatal(err)
	}
	made, err := sqs.NewFromConfig(q).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := sqs.NewFromConfig(q).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name + "-watch")})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	env := map[string]string{
		"MANHUNT_QUEUE":            *made.QueueUrl,
		"MANHUNT_WATCH_QUEUE":      *watch.QueueUrl,
		"SLUICE_QUEUES":            *made.QueueUrl + "," + *watch.QueueUrl,
		"SLUICE_ENDPOINT_DYNAMODB": *db.BaseEndpoint,
		"SLUICE_ENDPOINT_SQS":      *q.BaseEndpoint,
	}
	stop := daemon(t, name, env)
	for _, it := range manhunt.Fixtures()[:4] {
		if err := table.Put(t.Context(), it); err != nil {
			t.Fatal(err)
		}
	}
	var attempts []manhunt.Attempt
	localtest.Await(t, "an attempt", func() string {
		if _, attempts, _, err = table.SearchWithAttempts(t.Context(), "a271244"); err != nil || len(attempts) == 0 || attempts[0].Attempted == "" {
			return fmt.Sprintf("attempts %+v, %v", attempts, err)
		}
		return ""
	})
	if log := stop(); len(attempts) != 1 || attempts[0].Outcome != "contacted" || !strings.Contains(log, "pretending to reach a contact") {
		t.Errorf("attempts %+v, log:\n%s", attempts, log)
	}
}

func TestQueueIsRequired(t *testing.T) {
	_, err := routes(t.Context(), run.Setup{
		Env:        func(string) string { return "" },
		AWS:        func(string) aws.Config { return aws.Config{} },
		BatchHooks: func(string) batch.Hooks { return batch.Hooks{} },
	}, time.Now)
	if err == nil || !strings.Contains(err.Error(), "MANHUNT_QUEUE is not set; want") {
		t.Error(err)
	}
}
