//go:build integration

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/examples/estuve"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
)

// A worker consumes the queue, and reads no stream, also with SLUICE_TABLES set for a
// daemon.
func TestWorkerReadsNoTable(t *testing.T) {
	w := newWorld(t)
	q := localtest.SQS(t)
	queues, name := awssqs.NewFromConfig(q), localtest.Name("estuve")
	made, err := queues.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	w.env["ESTUVE_QUEUE"], w.env["SLUICE_ENDPOINT_SQS"], w.env["SLUICE_TABLES"] = *made.QueueUrl, *q.BaseEndpoint, w.tables.Maps
	w.put(estuve.Fixtures(w.tables)[0], estuve.Fixture{Table: w.tables.Points, Item: item.Of(item.String("map_id", "m-1"), item.String("point_id", "p-1"), item.String("user_id", "u-1"))})
	body := fmt.Sprintf(`{"kind":"cascade.delete","table":"%s","key":{"map_id":"m-1"},"parent":{"table":"%s","key":{"user_id":"u-1","map_id":"m-1"}},"dedupeKey":"m-1"}`, w.tables.Points, w.tables.Maps)
	if _, err := queues.SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: made.QueueUrl, MessageBody: &body}); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	exit := make(chan int, 1)
	var log strings.Builder
	go func() { // without --start, which a stream would need
		exit <- worker(ctx, []string{"--listen", "off", "--state", filepath.Join(t.TempDir(), "w.db")}, w.getenv, &log, &log)
	}()
	ended := false
	localtest.Await(t, "the points are gone", func() string {
		select {
		case code := <-exit:
			exit <- code
			ended = true
			return ""
		default:
		}
		if left := w.points(); left > 0 {
			return fmt.Sprintf("%d are left", left)
		}
		return ""
	})
	cancel()
	if code := <-exit; ended || code != 0 || !strings.Contains(log.String(), "application=estuve-worker tables=[]") {
		t.Errorf("exit %d, log:\n%s", code, log.String())
	}
}
