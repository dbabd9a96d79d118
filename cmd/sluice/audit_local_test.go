//go:build integration

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// Orders and lines reach one index by different templates.
const sharedWorldText = `
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
    project: {index: NAME, id: "o-{order}", version: "attribute:rev", fields: {app: shop}}
  - name: lines
    on: ["line#*", "line#SNAPSHOT"]
    project: {index: "{shelf}", id: "l-{order}-{line}", version: "attribute:rev", fields: {app: shop}}
`

// A repair deletes what is surely a ghost, and not too much at a time.
func TestAuditBrake(t *testing.T) {
	w := newFileWorld(t, sharedWorldText)
	w.sluice(0, []string{"validate", "--connect"}, "2 routes") // makes the index
	for i := range 8 {
		w.put("orders", "order", fmt.Sprint(i), "entityType", "order", "rev", "1")
	}
	for i := range 2 {
		w.put("lines", "order", fmt.Sprint(i), "line", "a", "entityType", "line", "rev", "1", "shelf", w.name)
	}
	client, err := opensearch.Connect(opensearch.Connection{URLs: []string{localtest.OpenSearchURL(t)}})
	if err != nil {
		t.Fatal(err)
	}
	document := func(id, body string) {
		t.Helper()
		if err := client.Call(t.Context(), "PUT", "/"+w.name+"/_doc/"+id+"?version=7&version_type=external", []byte(body), nil); err != nil {
			t.Fatal(err)
		}
	}
	audit := func(more ...string) []string {
		return append([]string{"audit", "--route", "orders", "--settle", "10ms"}, more...)
	}
	w.sluice(3, []string{"audit", "--route", "lines", "--settle", "10ms", "--repair"}, "10 repaired")
	document("o-77", `{"app":"crm","entityType":"order"}`)       // another application's
	document("invoice-7", `{"app":"shop","entityType":"order"}`) // likewise
	w.sluice(0, audit(), "10 documents, 12 listed: 0 missing, 0 stale, 0 different, 0 ghosts, 0 ahead, 2 of other applications")

	// 3 of 13 are more than 5 %.
	for i := range 3 {
		document(fmt.Sprint("o-9", i), `{"app":"shop","entityType":"order"}`)
	}
	w.sluice(3, audit(), "ghost "+w.name+"/o-90\n", "3 ghosts", "--repair would stop: no document is deleted: 3 of 13 are ghosts, and 0 may be deleted; look at them first: --max-deletes 3 deletes them")
	w.sluice(1, audit("--repair"), "o-90 (not repaired: too many documents would be deleted)", "0 ahead, 3 not repaired", "--max-deletes 3 deletes them")
	w.sluice(1, audit("--repair", "--json"), `"brake":{"ghosts":3,"documents":13,"allowed":0}`, `"clean":false,"error":"`)
	if says := w.sluice(3, audit("--repair", "--max-deletes", "3")); strings.Contains(says, "invoice") || !strings.Contains(says, "3 repaired") {
		t.Errorf("%s", says)
	}

	// A table that was restored empty, or is another one.
	for i := range 8 {
		w.delete("orders", "order", fmt.Sprint(i))
	}
	w.sluice(1, audit("--repair", "--max-deletes", "1000"), "8 of 10 are ghosts, more than half; check the table's name, the account and the Region, or build the index anew by sluice reindex")
	for i := range 2 {
		w.delete("lines", "order", fmt.Sprint(i), "line", "a")
	}
	w.sluice(1, audit("--repair", "--max-deletes", "1000"), "10 of 10 are ghosts, and the table has no item for any document")
}

func (w *fileWorld) delete(what string, pairs ...string) {
	w.t.Helper()
	name := w.name + "-" + what
	if _, err := w.db.DeleteItem(w.t.Context(), &dynamodb.DeleteItemInput{TableName: &name, Key: texts(pairs...)}); err != nil {
		w.t.Fatal(err)
	}
}
