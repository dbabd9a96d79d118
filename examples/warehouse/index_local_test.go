//go:build integration

package warehouse

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// Packages and builds are found in OpenSearch as they are in the tables, also
// when their records are handled again.
func TestIndexes(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, address string) {
		client, err := opensearch.Connect(opensearch.Connection{URLs: []string{address}})
		if err != nil {
			t.Fatal(err)
		}
		documents, err := opensearch.New(client, opensearch.Options{})
		if err != nil {
			t.Fatal(err)
		}
		prefix := localtest.Name("wrhs") + "-"
		marks := client.Indices().Marks(projection.DefaultMark, false)
		check := func(want string) {
			t.Helper()
			if err := CheckIndexes(t.Context(), client, marks, prefix); want == "" && err != nil || want != "" && !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		check("index " + prefix + "package does not exist at " + address + ": run `warehouse create`")
		settings := map[string]any{"settings": map[string]any{"number_of_replicas": 0}}
		if err := client.Call(t.Context(), http.MethodPut, "/"+prefix+"package", settings, nil); err != nil {
			t.Fatal(err)
		}
		check("index " + prefix + "package maps the field dependencies in another way")
		if err := client.Call(t.Context(), http.MethodDelete, "/"+prefix+"package", nil, nil); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time they are there
			if err := CreateIndexes(t.Context(), client, prefix, 0); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { // the test's own context has ended by now
			if err := client.Call(context.Background(), http.MethodDelete, "/"+prefix+"package-000001,"+prefix+"build-000001", nil, nil); err != nil {
				t.Error(err)
			}
		})
		check("")
		w := newWorldOn(t, documents.Write, prefix)
		is := func(index, id, want string) {
			t.Helper()
			w.become(id, func() string {
				docs, err := client.Get(t.Context(), []document.Ref{{Index: prefix + index, ID: id}})
				if err != nil {
					return err.Error()
				}
				if got := sorted(t, []byte(shown(docs[0]))); got != sorted(t, []byte(want)) {
					return got + ", want " + want
				}
				return ""
			})
		}
		build, version := Fixtures()[8], Fixtures()[9]
		w.put("build", build.Item)
		w.put("version", version.Item)
		is("build", buildID, buildDoc)
		is("package", "email", `{"name":"email","version":"2.1.0","description":"Mail","dependencies":{"layout":"^3.0.0","button":"^1.0.0"}}`)

		if err := w.store.Delete(t.Context(), w.table("build"), build.Item.Only("key", "locale")); err != nil {
			t.Fatal(err)
		}
		is("build", buildID, "")
		w.put("build", build.Item.With(item.String("previous_build_id", "none")))
		is("build", buildID, strings.Replace(buildDoc, "email!prod!2.0!en-US", "none", 1))
	})
}

// sorted is a JSON object with its members in order: a stream has them in any.
func sorted(t *testing.T, object []byte) string {
	t.Helper()
	if len(object) == 0 {
		return ""
	}
	it, err := item.FromJSON(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(it.AppendJSON(nil, item.JSON{SortedKeys: true}))
}
