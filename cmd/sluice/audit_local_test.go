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

// A repair deletes certain ghosts only, and not too many at a time.
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
	w.sluice(0, audit(), "10 documents expected, 12 in the index: 0 missing, 0 stale, 0 different, 0 ghosts, 0 ahead, 2 of other applications")

	// 3 of 13 are more than 5 %.
	for i := range 3 {
		document(fmt.Sprint("o-9", i), `{"app":"shop","entityType":"order"}`)
	}
	w.sluice(3, audit(), "ghost "+w.name+"/o-90\n", "3 ghosts", "--repair would stop: no document is deleted: 3 of 13 are ghosts, and 1 may be deleted; look at them first: --max-deletes 3 deletes them")
	w.sluice(1, audit("--repair"), "o-90 (not repaired: too many documents would be deleted)", "0 ahead, 3 not repaired", "--max-deletes 3 deletes them")
	w.sluice(1, audit("--repair", "--json"), `"brake":{"ghosts":3,"documents":13,"allowed":1}`, `"clean":false,"error":"`)
	if says := w.sluice(3, audit("--repair", "--max-deletes", "3")); strings.Contains(says, "invoice") || !strings.Contains(says, "3 repaired") {
		t.Errorf("%s", says)
	}

	// A table that was restored empty, or is another one.
	for i := range 8 {
		w.delete("orders", "order", fmt.Sprint(i))
	}
	w.sluice(1, audit("--repair", "--max-deletes", "1000"), "8 of 10 are ghosts, more than half; check the table's name, the account and the Region, or build the index anew by sluice reindex; it is tables "+w.name+"-orders, "+w.name+"-lines of DynamoDB at http", "; if the table is the right one: --trust-tables --max-deletes 8 deletes them")
	for i := range 2 {
		w.delete("lines", "order", fmt.Sprint(i), "line", "a")
	}
	w.sluice(1, audit("--repair", "--max-deletes", "1000"), "10 of 10 are ghosts, and the table has no item for any of them")
}

// A file that names another table writes nothing and deletes nothing, also when the
// command is run again.
func TestAuditOfAnotherTable(t *testing.T) {
	w := newFileWorld(t, sharedWorldText)
	w.sluice(0, []string{"validate", "--connect"}, "2 routes")
	client, err := opensearch.Connect(opensearch.Connection{URLs: []string{localtest.OpenSearchURL(t)}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		path := fmt.Sprintf("/%s/_doc/o-%d?version=7&version_type=external", w.name, i)
		if err := client.Call(t.Context(), "PUT", path, []byte(`{"app":"shop","entityType":"order"}`), nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 50 {
		w.put("orders", "order", fmt.Sprint("other", i), "entityType", "order", "rev", "1")
	}
	audit := []string{"audit", "--route", "orders", "--settle", "10ms"}
	stops := "nothing is written: the index has 0 of the 50 documents that the items of table " + w.name + "-orders ask for, and 2 without an item"
	w.sluice(3, audit, "missing: 30 more; --json prints all", "50 documents expected, 2 in the index", "--repair would stop: "+stops)
	for range 2 {
		w.sluice(1, append(audit, "--repair"), stops, "index "+w.name, "--trust-tables")
	}
	w.sluice(3, audit, "50 documents expected, 2 in the index")
	w.sluice(3, append(audit, "--repair", "--trust-tables", "--max-deletes", "2"), "52 repaired", "all drift is repaired")
	w.sluice(0, audit, "50 documents expected, 50 in the index")
}

func (w *fileWorld) delete(what string, pairs ...string) {
	w.t.Helper()
	name := w.name + "-" + what
	if _, err := w.db.DeleteItem(w.t.Context(), &dynamodb.DeleteItemInput{TableName: &name, Key: texts(pairs...)}); err != nil {
		w.t.Fatal(err)
	}
}
