//go:build integration

package config

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

// A file without Go climbs a ladder by webhooks to the end, on real streams and queues.
// When the status is active again, it climbs once more.
func TestEscalateOnServers(t *testing.T) {
	services := map[string]aws.Config{"dynamodb": localtest.DynamoDB(t), "sqs": localtest.SQS(t)}
	prefix := localtest.Name("escalate") + "-"
	newTable(t, awsdynamodb.NewFromConfig(services["dynamodb"]), prefix+"calls", []string{"PK", "SK"})
	var mu sync.Mutex
	var posts []string
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		posts = append(posts, r.Header.Get("Idempotency-Key"))
	}))
	t.Cleanup(srv.Close)

	c := contacted(srv.URL)
	c.Source.Tables = []string{prefix + "calls"}
	for name, sink := range c.Sinks {
		sink.SQS.Queue = prefix + name
		if _, err := awssqs.NewFromConfig(services["sqs"]).CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: &sink.SQS.Queue}); err != nil {
			t.Fatal(err)
		}
	}
	c.Routes = append(c.Routes, Route{Name: "again", On: Strings{"call#MODIFY"}, Escalate: &Escalate{Do: "resume"}})
	c.Routes[1].Escalate.ExpireAfter = Duration(time.Second)
	app, err := build(t, c, Setup{
		AWS: func(service string) aws.Config { return services[service] }, Check: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	store, err := dynamodb.New(services["dynamodb"], dynamodb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(`"phone"`, `"text"`, `"order":1,"wait":0`, `"order":2,"wait":1`).Replace(aStep)
	for _, it := range []string{aStep, text, aCall} {
		if err := store.Put(t.Context(), prefix+"calls", plain(it)); err != nil {
			t.Fatal(err)
		}
	}
	consume(t, services, app)
	key := plain(`{"PK":"c-1","SK":"call"}`)
	ended := func(calls string) {
		t.Helper()
		localtest.Await(t, "the call ends", func() string {
			it, err := store.Get(t.Context(), prefix+"calls", key)
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if status, _ := it.Lookup("status"); status.Str() != "failed" || strings.Join(posts, " ") != calls {
				return fmt.Sprintf("%s, called %q", it.Raw(), posts)
			}
			return ""
		})
	}
	ended("call/c-1#0 call/c-1#1")
	err = store.Write(t.Context(), dynamo.Update(prefix+"calls", key, "SET #s = :open").Name("#s", "status").Value(":open", "open"))
	if err != nil {
		t.Fatal(err)
	}
	ended("call/c-1#0 call/c-1#1 call/c-1#0@1 call/c-1#1@1")
}
