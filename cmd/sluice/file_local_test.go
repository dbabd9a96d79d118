//go:build integration

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// fileWorld is a configuration on real servers: orders with lines, both
// projected into one index; lines are counted, and deleted with their order.
type fileWorld struct {
	t       *testing.T
	db      *dynamodb.Client
	cluster *opensearch.Indices
	name    string // of the index, and of tables with what they hold behind it
	env     map[string]string
}

const fileWorldText = `
name: shop
source: {tables: [NAME-orders, NAME-lines], start: TRIM_HORIZON}
sinks:
  search:
    opensearch:
      urls: ["${SEARCH}"]
      indices: [{alias: NAME, file: index.json}]
routes:
  - name: orders
    on: ["order#*", "order#SNAPSHOT"]
    project: {index: NAME, id: "o-{order}", version: "attribute:rev", rename: {status: state}}
  - name: lines
    on: ["line#*", "line#SNAPSHOT"]
    project: {index: NAME, id: "l-{order}-{line}", version: "attribute:rev"}
  - name: count
    on: "line#*"
    count:
      id: lines
      table: NAME-lines
      markers: NAME-markers
      numbers: [{table: NAME-orders, attribute: lines, key: [order]}]
  - name: cascade
    on: order#REMOVE
    cascade:
      table: NAME-orders
      key: [order]
      children:
        - {table: NAME-lines, key: [order, line], partition: {name: order, from: order}}
`

func newFileWorld(t *testing.T, text string) *fileWorld {
	cfg, url := localtest.DynamoDB(t), localtest.OpenSearchURL(t)
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
	} {
		t.Setenv(name, value)
	}
	client, err := opensearch.Connect(opensearch.Connection{URLs: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	w := &fileWorld{t: t, db: dynamodb.NewFromConfig(cfg), cluster: client.Indices(), name: localtest.Name("file")}
	folder := t.TempDir()
	file := filepath.Join(folder, "sluice.yaml")
	for path, text := range map[string]string{
		file:                                strings.ReplaceAll(text, "NAME", w.name),
		filepath.Join(folder, "index.json"): `{"settings":{"number_of_replicas":0},"mappings":{"properties":{"order":{"type":"keyword"}}}}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w.env = map[string]string{"SLUICE_CONFIG": file, "SEARCH": url, "SLUICE_ENDPOINT_DYNAMODB": *cfg.BaseEndpoint, "SLUICE_STATE": filepath.Join(folder, "state.db")}
	w.table("markers", "pk")
	w.table("orders", "order")
	w.table("lines", "order", "line")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		w.cluster.Delete(ctx, w.name+"-000001")
		w.cluster.Delete(ctx, w.name+"-000002")
	})
	return w
}

func (w *fileWorld) table(what string, keys ...string) {
	w.t.Helper()
	name := w.name + "-" + what
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	}
	for i, key := range keys {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &key, AttributeType: types.ScalarAttributeTypeS})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &key, KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]})
	}
	if _, err := w.db.CreateTable(w.t.Context(), in); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		w.db.DeleteTable(context.WithoutCancel(w.t.Context()), &dynamodb.DeleteTableInput{TableName: &name})
	})
}

// put writes an item of texts and, of rev and lines, numbers.
func (w *fileWorld) put(what string, pairs ...string) {
	w.t.Helper()
	it := texts(pairs...)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] == "rev" || pairs[i] == "lines" {
			it[pairs[i]] = &types.AttributeValueMemberN{Value: pairs[i+1]}
		}
	}
	if _, err := w.db.PutItem(w.t.Context(), &dynamodb.PutItemInput{TableName: aws.String(w.name + "-" + what), Item: it}); err != nil {
		w.t.Fatal(err)
	}
}

func texts(pairs ...string) map[string]types.AttributeValue {
	it := map[string]types.AttributeValue{}
	for i := 0; i < len(pairs); i += 2 {
		it[pairs[i]] = &types.AttributeValueMemberS{Value: pairs[i+1]}
	}
	return it
}

// sluice runs a command. Its output must contain the texts says.
func (w *fileWorld) sluice(code int, args []string, says ...string) string {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	got := execute(w.t.Context(), args, func(name string) string { return w.env[name] }, &stdout, &stderr)
	all := stdout.String() + stderr.String()
	for _, want := range says {
		if !strings.Contains(all, want) {
			w.t.Errorf("%v does not say %q", args, want)
		}
	}
	if got != code || w.t.Failed() {
		w.t.Fatalf("%v: exit code %d, want %d\n%s", args, got, code, all)
	}
	return stdout.String()
}

func TestByTheFile(t *testing.T) {
	w := newFileWorld(t, fileWorldText)
	for i := range 3 {
		w.put("orders", "order", fmt.Sprint(i), "entityType", "order", "rev", "1", "status", "new", "lines", fmt.Sprint(i))
		w.put("lines", "order", fmt.Sprint(i), "line", "a", "entityType", "line", "rev", "1")
	}
	w.put("orders", "order", "gone", "entityType", "other", "rev", "1")
	w.put("lines", "order", "9", "line", "a", "entityType", "line", "rev", "1") // whose order is not there
	w.sluice(0, []string{"validate", "--connect"}, "4 routes")

	// Explain one item.
	w.sluice(2, []string{"explain", "--key", `{"order":"1"}`}, "--table is missing")
	orders := []string{"explain", "--table", w.name + "-orders", "--key"}
	w.sluice(1, append(orders, `{"order":"7"}`), "there is no item with the key order=7")
	w.sluice(2, append(orders, `{"pk":"7"}`), "is no key of table")
	w.sluice(0, append(orders, `{"order":"1"}`, "--payload"), "MODIFY  order  order=1", "write document o-1 of "+w.name, `"state":"new"`)
	w.sluice(0, append(orders, `{"order":"1"}`, "--event", "REMOVE", "--route", "cascade"), "delete 1 row of table "+w.name+"-lines")
	w.sluice(0, []string{"tail", w.name + "-orders", "--from", "TRIM_HORIZON", "--limit", "4"}, "INSERT  order  order=0  ", "→ orders", "INSERT  other  order=gone")

	// Each route fills its documents; an audit sees those of both.
	w.sluice(2, []string{"backfill"}, "there are several project routes: say which by --route: orders, lines")
	w.sluice(2, []string{"backfill", "--route", "orders"}, "the file reads several tables: say which by --table")
	backfill := func(what string) []string {
		return []string{"backfill", "--route", what, "--table", w.name + "-" + what, "--without-stream"}
	}
	w.sluice(3, []string{"audit", "--route", "orders", "--settle", "10ms"}, "7 missing")
	w.sluice(0, backfill("orders"), "finished")
	w.sluice(3, []string{"audit", "--route", "orders", "--settle", "10ms"}, "4 missing", "0 ghosts")
	w.sluice(2, append(backfill("lines"), "--type", "lin"), `does not project "lin": did you mean "line"?`)
	w.sluice(0, append(backfill("lines"), "--type", "line"), "finished")
	w.sluice(0, backfill("orders"), "was finished before")
	w.sluice(0, []string{"audit", "--route", "lines", "--settle", "10ms"}, "7 documents", "0 missing")

	// All of it gets into a new index.
	reindex := []string{"reindex", "start", "--route", "orders", "--ttl", "10ms", "--longest", "10ms"}
	w.sluice(0, reindex, w.name+"-000001 has 7 documents, "+w.name+"-000002 7")
	w.sluice(0, []string{"reindex", "swap", "--route", "lines"}, "lead to "+w.name+"-000002")
	w.sluice(0, []string{"reindex", "finish", "--route", "lines", "--delete", "--ttl", "10ms", "--longest", "10ms"}, ": idle, leads to "+w.name+"-000002")

	// Orders have the lines 0, 1 and 2, and one each is there.
	recount := []string{"recount", "--settle", "10ms"}[:3:3]
	w.sluice(3, recount, "order=0: lines would be set from 0 to 1", "order=2: lines would be set from 2 to 1", "2 counters were wrong: sluice recount --repair")
	w.sluice(0, append(recount, "--key", `{"order":"1"}`), "1 parent, 1 right")
	w.sluice(3, append(recount, "--key", `{"order":"2"}`, "--json", "--repair"), `"attribute":"lines","old":2,"new":1,"corrected":true`)
	w.sluice(3, append(recount, "--repair"), "order=0: lines set from 0 to 1", "1 counter was wrong")
	w.sluice(0, recount, "4 parents, 4 right")

	// Children go when their parent is gone.
	w.sluice(1, []string{"cascade", "--key", `{"order":"1"}`}, "the parent order=1 exists")
	w.sluice(0, []string{"cascade", "--key", `{"order":"9"}`, "--dry-run", "--json"}, `"key":{"order":{"S":"9"},"line":{"S":"a"}}`, `{"rows":1}`)
	w.sluice(0, []string{"cascade", "--key", `{"order":"9"}`}, "table "+w.name+"-lines: 1 row deleted")
	w.sluice(0, []string{"cascade", "--key", `{"order":"9"}`}, "there are no children")
	w.sluice(2, []string{"cascade", "--key", `{"order":"9","more":"1"}`, "--route", "count"}, `"count" is no cascade route`)
}
