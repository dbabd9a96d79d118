//go:build integration

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/docversion"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// An index of documents by attribute is taken over by version: sequence, and its
// tombstones are swept. Until then the one kind of program refuses it, and from then
// on the other.
func TestAdoptAndSweep(t *testing.T) {
	const text = `
source: {tables: [NAME-orders], start: TRIM_HORIZON}
sinks: {search: {opensearch: {urls: ["${SEARCH}"], indices: [{alias: NAME, file: index.json}]}}}
routes:
  - name: orders
    on: ["order#*", "order#SNAPSHOT"]
    project: {index: NAME, id: "{order}", version: VERSION}
`
	byAttribute, bySequence := strings.ReplaceAll(text, "VERSION", "'attribute:rev'"), strings.ReplaceAll(text, "VERSION", "sequence")
	w := newFileWorld(t, byAttribute)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(w.env["SLUICE_CONFIG"], []byte(strings.ReplaceAll(text, "NAME", w.name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.sluice(0, []string{"validate", "--connect"}, "1 route")
	for i := range 3 {
		w.put("orders", "order", fmt.Sprint(i), "entityType", "order", "rev", "1")
	}
	w.sluice(3, []string{"audit", "--settle", "10ms", "--repair"}, "3 repaired")

	write(bySequence)
	w.sluice(1, []string{"validate", "--connect"}, "its documents (3) are not versioned by sequence", "run sluice adopt --index "+w.name)
	w.sluice(2, []string{"adopt"}, "--index is missing")
	w.sluice(2, []string{"adopt", "--index", "other"}, `no route with version: sequence writes to "other"`, "first set both in a route")
	w.sluice(2, []string{"adopt", "--index", w.name}, "Say --yes")
	w.sluice(0, []string{"adopt", "--index", w.name, "--yes"}, "is ready for version: sequence")
	w.sluice(0, []string{"validate", "--connect"}, "1 route")
	w.sluice(0, []string{"audit", "--settle", "10ms"}, "3 documents expected, 3 in the index: 0 missing")

	client, err := opensearch.Connect(opensearch.Connection{URLs: []string{localtest.OpenSearchURL(t)}})
	if err != nil {
		t.Fatal(err)
	}
	const sequence = "20250704T123321.123-0000000000000028856700000818875059017386"
	body := fmt.Sprintf(`{"sluice":{"sequence":%q,"deleted":%q}}`, sequence, time.Now().Add(-50*time.Hour).UTC().Format(time.RFC3339))
	path := fmt.Sprintf("/%s/_doc/gone?version_type=external&version=%d&refresh=true", w.name, docversion.Least(sequence))
	if err := client.Call(t.Context(), "PUT", path, []byte(body), nil); err != nil {
		t.Fatal(err)
	}
	w.sluice(0, []string{"audit", "--settle", "10ms"}, "3 documents expected, 3 in the index: 0 missing") // the alias hides it
	// A document that another program has copied.
	body = fmt.Sprintf(`{"sluice":{"sequence":%q,"deleted":%q}}`, sequence, time.Now().UTC().Format(time.RFC3339))
	if err := client.Call(t.Context(), "PUT", "/"+w.name+"/_doc/copied?refresh=true", []byte(body), nil); err != nil {
		t.Fatal(err)
	}
	w.sluice(3, []string{"audit", "--settle", "10ms"}, "unfenced "+w.name+"/copied\n", "3 documents expected, 3 in the index", "1 unfenced")
	w.sluice(3, []string{"audit", "--settle", "10ms", "--repair"}, "unfenced "+w.name+"/copied (repaired)")
	w.sluice(0, []string{"audit", "--settle", "10ms"}, "3 documents expected, 3 in the index: 0 missing")
	w.sluice(2, []string{"sweep", "--keep", "24h"}, "want 25h0m0s or more")
	w.sluice(0, []string{"sweep", "--keep", "72h"}, "0 tombstones deleted")
	w.sluice(0, []string{"sweep", "--json"}, `"tombstones":1`)
	w.sluice(0, []string{"sweep"}, "0 tombstones deleted, 1 younger than 48h0m0s stay")

	// A document that was versioned by its time in nanoseconds.
	if err := client.Call(t.Context(), "PUT", "/"+w.name+"/_doc/timed?version_type=external&version=1795000000000000000", []byte(`{}`), nil); err != nil {
		t.Fatal(err)
	}
	if err := client.Call(t.Context(), "POST", "/"+w.name+"/_refresh", nil, nil); err != nil {
		t.Fatal(err)
	}
	w.sluice(0, []string{"adopt", "--index", w.name, "--yes"}, "is ready for version: sequence\nIts documents have greater versions")

	write(byAttribute)
	w.sluice(1, []string{"validate", "--connect"}, "its documents are versioned by sequence")
	w.sluice(2, []string{"sweep"}, "no route has version: sequence")
}
