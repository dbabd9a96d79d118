//go:build integration

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	store "github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/streamtest"
)

// worldFile has a route of each kind. NAME stands before all names, since the
// servers are shared.
const worldFile = `
name: NAME
source: {tables: [NAME-orders, NAME-calls, NAME-users, NAME-maps, NAME-points], start: TRIM_HORIZON}
sinks:
  search: {opensearch: {urls: ["${SEARCH}"], indices: [{alias: NAME, file: index.json}]}}
  changes: {sqs: {queue: NAME-changes.fifo}}
  tries: {sqs: {queue: NAME-tries}}
  watch: {sqs: {queue: NAME-watch}}
  cascades: {sqs: {queue: NAME-cascades}}
routes:
  - name: changes
    on: "order#*"
    send: {to: changes, group: "{id}", body: '{"id":"{id}","event":"{$event}","n":{n}}'}
  - name: search
    on: "order#*"
    project: {index: NAME, id: "{id}", version: sequence}
  - name: only numbers
    on: order#INSERT
    when: new.n >= 0
    log: {level: debug}
  - name: first step
    on: call#INSERT
    escalate:
      do: start
      kind: call
      queue: tries
      watch: watch
      expireAfter: 1s
      ladder:
        table: NAME-calls
        key: {PK: "{id}", SK: call}
        steps: {PK: "contact-{ladder}"}
        escalation: {id: PK, ladder: contact, started: started, status: status, active: open, reason: why}
        step: {typeAttribute: entityType, type: step, id: SK, order: order, waitSeconds: wait}
        attempt: {key: {PK: "{id}", SK: "attempt-{number}-{round}"}, escalation: PK, number: number, order: order, stepId: step, at: at}
  - name: next step
    on: [attempt#INSERT, attempt#MODIFY]
    changed: at
    escalate: {do: next}
  - name: count points
    on: [point#INSERT, point#REMOVE]
    count:
      id: points
      table: NAME-points
      markers: NAME-markers
      deleteOrphans: NAME-maps
      numbers:
        - {table: NAME-maps, attribute: points, key: [user_id, map_id]}
        - {table: NAME-users, attribute: points, key: [user_id]}
  - name: delete points
    on: map#REMOVE
    cascade:
      table: NAME-maps
      key: [user_id, map_id]
      queue: cascades
      threshold: 10
      children:
        - {table: NAME-points, key: [map_id, point_id], partition: {name: map_id, from: map_id}}
deadLetter: {queue: NAME-dead}
`

// world is that file on real servers. Proxies kill the running process at its writes.
type world struct {
	t      *testing.T
	name   string
	file   string
	env    []string // of who runs the file
	db     *store.Store
	tables *dynamodb.Client
	search string // the index
	queues *awssqs.Client
	urls   map[string]string // of queues
	proxy  map[string]*streamtest.Proxy

	mu     sync.Mutex
	kill   func() // of what runs now
	writes int
	kills  int

	// Received messages, in order.
	changes map[string][]string // by order
	steps   map[string]string   // bodies by dedupe key
	again   []string            // keys of messages that came with another body
}

func newWorld(t *testing.T) *world {
	cfg, q, search := localtest.OwnDynamoDB(t), localtest.SQS(t), localtest.OpenSearchURL(t)
	w := &world{
		t: t, name: localtest.Name("all"), tables: dynamodb.NewFromConfig(cfg), queues: awssqs.NewFromConfig(q),
		urls: map[string]string{}, proxy: map[string]*streamtest.Proxy{}, changes: map[string][]string{}, steps: map[string]string{},
	}
	var err error
	if w.db, err = store.New(cfg, store.Options{}); err != nil {
		t.Fatal(err)
	}
	for table, key := range map[string][]string{
		"orders": {"id"}, "calls": {"PK", "SK"}, "users": {"user_id"}, "maps": {"user_id", "map_id"}, "points": {"map_id", "point_id"}, "markers": {"pk"},
	} {
		w.table(table, key...)
	}
	for _, queue := range []string{"changes.fifo", "tries", "watch", "cascades", "dead"} {
		w.queue(queue)
	}
	w.search = search + "/" + w.name
	t.Cleanup(func() { w.http("DELETE", search+"/"+w.name+"-000001", "") })

	dir := t.TempDir()
	w.file = filepath.Join(dir, "sluice.yaml")
	for path, text := range map[string]string{
		w.file:                           strings.ReplaceAll(worldFile, "NAME", w.name),
		filepath.Join(dir, "index.json"): `{"settings":{"number_of_replicas":0},"mappings":{"dynamic":false}}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for service, url := range map[string]string{"dynamodb": *cfg.BaseEndpoint, "sqs": *q.BaseEndpoint, "search": search} {
		w.proxy[service] = streamtest.NewProxy(t, url)
	}
	w.env = []string{
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_EC2_METADATA_DISABLED=true",
		"SLUICE_CONFIG=" + w.file, "SEARCH=" + w.proxy["search"].URL(),
		"SLUICE_ENDPOINT_DYNAMODB=" + w.proxy["dynamodb"].URL(), "SLUICE_ENDPOINT_SQS=" + w.proxy["sqs"].URL(),
	}
	return w
}

func (w *world) table(what string, key ...string) {
	w.t.Helper()
	name := w.name + "-" + what
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: dbtypes.BillingModePayPerRequest,
		StreamSpecification: &dbtypes.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: dbtypes.StreamViewTypeNewAndOldImages},
	}
	for i, attribute := range key {
		in.AttributeDefinitions = append(in.AttributeDefinitions, dbtypes.AttributeDefinition{AttributeName: &attribute, AttributeType: dbtypes.ScalarAttributeTypeS})
		in.KeySchema = append(in.KeySchema, dbtypes.KeySchemaElement{AttributeName: &attribute, KeyType: []dbtypes.KeyType{dbtypes.KeyTypeHash, dbtypes.KeyTypeRange}[i]})
	}
	if _, err := w.tables.CreateTable(w.t.Context(), localtest.OneShard(in)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) queue(what string) {
	w.t.Helper()
	in := &awssqs.CreateQueueInput{QueueName: aws.String(w.name + "-" + what)}
	if strings.HasSuffix(what, ".fifo") {
		in.Attributes = map[string]string{"FifoQueue": "true"}
	}
	made, err := w.queues.CreateQueue(w.t.Context(), in)
	if err != nil {
		w.t.Fatal(err)
	}
	w.urls[what] = *made.QueueUrl
	w.t.Cleanup(func() {
		_, _ = w.queues.DeleteQueue(context.Background(), &awssqs.DeleteQueueInput{QueueUrl: made.QueueUrl}) // it is all the test's own
	})
}

func (w *world) http(method, url, body string) string {
	w.t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(w.t.Context()), method, url, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	// A shard of an index that was just made is not there at once.
	absent := resp.StatusCode == http.StatusNotFound || method == "GET" && resp.StatusCode == http.StatusServiceUnavailable
	if resp.StatusCode >= 300 && !absent {
		w.t.Fatalf("%s %s: %d %s", method, url, resp.StatusCode, answer)
	}
	return string(answer)
}

// killAt has who runs the file killed at each nth write to a server, up to so
// many times, by turns before the server has seen it and after.
func (w *world) killAt(nth, most int) {
	for _, proxy := range w.proxy {
		proxy.Fail(streamtest.ProxyFault{
			Match: func(r *http.Request, _ []byte) bool {
				_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
				write := strings.HasSuffix(r.URL.Path, "/_bulk") ||
					slices.Contains([]string{"TransactWriteItems", "BatchWriteItem", "UpdateItem", "SendMessageBatch", "DeleteMessageBatch"}, op)
				if !write {
					return false
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				w.writes++
				return w.writes%nth == 0 && w.kills < most
			},
			Rewrite: func(request []byte, send func([]byte) (int, []byte)) (answer []byte) {
				w.mu.Lock()
				w.kills++
				after, kill := w.kills%2 == 0, w.kill
				w.mu.Unlock()
				if after {
					_, answer = send(request)
				}
				if kill != nil {
					kill()
				}
				return answer
			},
		})
	}
}

// running sets the function that kills the running process.
func (w *world) running(kill func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kill = kill
}

func (w *world) put(table, it string) {
	w.t.Helper()
	if err := w.db.Put(w.t.Context(), w.name+"-"+table, plain(w.t, it)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) delete(table, key string) {
	w.t.Helper()
	if err := w.db.Delete(w.t.Context(), w.name+"-"+table, plain(w.t, key)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(table, key, attribute string) string {
	w.t.Helper()
	it, err := w.db.Get(w.t.Context(), w.name+"-"+table, plain(w.t, key))
	if err != nil {
		w.t.Fatal(err)
	}
	v, _ := it.Lookup(attribute)
	return v.Str()
}

func (w *world) points(mapID string) (n int) {
	w.t.Helper()
	q := dynamo.Query{Table: w.name + "-points", Partition: item.String("map_id", mapID), Attributes: []string{"point_id"}}
	for _, err := range dynamo.All(w.t.Context(), w.db.Query, q) {
		if err != nil {
			w.t.Fatal(err)
		}
		n++
	}
	return n
}

func plain(t *testing.T, text string) sluice.Item {
	t.Helper()
	it, err := item.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// receive receives the messages of a queue. It deletes a message if done returns no
// error.
func (w *world) receive(queue string, done func(body string) error) {
	w.t.Helper()
	out, err := w.queues.ReceiveMessage(w.t.Context(), &awssqs.ReceiveMessageInput{
		QueueUrl: aws.String(w.urls[queue]), MaxNumberOfMessages: 10, VisibilityTimeout: 30,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range out.Messages {
		if err := done(*m.Body); err != nil {
			w.t.Fatal(err)
		}
		if _, err := w.queues.DeleteMessage(w.t.Context(), &awssqs.DeleteMessageInput{QueueUrl: aws.String(w.urls[queue]), ReceiptHandle: m.ReceiptHandle}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// consume stands for the consumers of the file's messages: it notes the changes of
// orders, and makes the attempts of calls.
func (w *world) consume() {
	w.receive("changes.fifo", func(body string) error {
		var m struct{ ID string }
		err := json.Unmarshal([]byte(body), &m)
		w.changes[m.ID] = append(w.changes[m.ID], body)
		return err
	})
	w.receive("tries", w.try)
}

// try handles a message of an escalation.
func (w *world) try(body string) error {
	var m struct {
		Kind, Escalation, Step, DedupeKey string
		Number, Order                     int
		NotBefore                         time.Time
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return err
	}
	if before, ok := w.steps[m.DedupeKey]; ok && before != body {
		w.again = append(w.again, before+" and "+body)
	}
	w.steps[m.DedupeKey] = body
	if early := time.Until(m.NotBefore); early > 0 {
		_, err := w.queues.SendMessage(w.t.Context(), &awssqs.SendMessageInput{
			QueueUrl: aws.String(w.urls["tries"]), MessageBody: &body, DelaySeconds: int32(early/time.Second) + 1,
		})
		return err
	}
	call := item.Of(item.String("PK", m.Escalation), item.String("SK", "call"))
	ends := dynamo.Update(w.name+"-calls", call, "SET #s = :to").If("#s = :open").Name("#s", "status").Value(":open", "open")
	if m.Kind == "call.expire" {
		return ignored(w.db.Write(w.t.Context(), ends.Value(":to", "expired")))
	}
	if m.Escalation == "answered" {
		if err := ignored(w.db.Write(w.t.Context(), ends.Value(":to", "answered"))); err != nil {
			return err
		}
	}
	attempt := fmt.Sprintf(`{"PK":%q,"SK":"attempt-%d-0","entityType":"attempt","number":%d,"order":%d,"step":%q,"at":%q}`,
		m.Escalation, m.Number, m.Number, m.Order, m.Step, time.Now().UTC().Format(time.RFC3339))
	put := dynamo.Put(w.name+"-calls", plain(w.t, attempt)).If("attribute_not_exists(#k)").Name("#k", "PK")
	return ignored(w.db.Write(w.t.Context(), put))
}

// ignored is err, unless it says that it was done before.
func ignored(err error) error {
	if dynamo.IsCondition(err) {
		return nil
	}
	return err
}

// dead are the dead letters in the queue.
func (w *world) dead() (letters []string) {
	w.t.Helper()
	for {
		n := len(letters)
		w.receive("dead", func(body string) error {
			letters = append(letters, body)
			return nil
		})
		if len(letters) == n {
			return letters
		}
	}
}

// bulk is a write of documents.
func bulk(r *http.Request, _ []byte) bool { return strings.HasSuffix(r.URL.Path, "/_bulk") }
