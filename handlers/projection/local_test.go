//go:build integration

package projection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docversion"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// A name that is refused here is refused by OpenSearch, and no other.
func TestIndexNamesOfOpenSearch(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		client, err := opensearch.Connect(opensearch.Connection{URLs: []string{url}})
		if err != nil {
			t.Fatal(err)
		}
		end := fmt.Sprintf("%x", rand.Uint32())
		names := []string{"a" + end, "ä.b_c-d+e" + end, "type$ed-fi$3-3-1-b$" + end, strings.Repeat("a", 255-len(end)) + end, "%'()=@" + end, "日本" + end,
			"", ".", "..", strings.Repeat("a", 256-len(end)) + end, "_a" + end, "-a" + end, "+a" + end, "aB" + end, "Ä" + end}
		for _, c := range `\/*?"<>| ,#:` {
			names = append(names, "a"+string(c)+end)
		}
		var body bytes.Buffer
		for _, name := range names {
			line, _ := json.Marshal(map[string]any{"index": map[string]any{"_index": name, "_id": "1"}})
			fmt.Fprintf(&body, "%s\n{}\n", line)
			if indexFault(name) == "" {
				defer client.Call(t.Context(), "DELETE", "/"+strings.NewReplacer("%", "%25").Replace(name), nil, nil)
			}
		}
		resp, err := http.Post(url+"/_bulk", "application/x-ndjson", &body)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		defer http.DefaultClient.CloseIdleConnections()
		var answer struct {
			Items []struct {
				Index struct {
					Status int
					Error  struct{ Type, Reason string }
				}
			}
		}
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Items) != len(names) {
			t.Fatal(err, len(answer.Items), resp.Status)
		}
		for i, name := range names {
			is := answer.Items[i].Index
			if fault := indexFault(name); (fault == "") != (is.Status == 201) {
				t.Errorf("%q: we say %q, OpenSearch %d %s", name, fault, is.Status, is.Error.Reason)
			}
		}
	})
}

// OpenSearch stores documents unchanged: any texts, numbers and ids come back the same.
func TestDocumentsComeBack(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		client, err := opensearch.Connect(opensearch.Connection{URLs: []string{url}})
		if err != nil {
			t.Fatal(err)
		}
		sink, err := opensearch.New(client, opensearch.Options{})
		if err != nil {
			t.Fatal(err)
		}
		index := localtest.Name("projection")
		mapping := map[string]any{
			"settings": map[string]any{"number_of_shards": 1, "number_of_replicas": 0},
			"mappings": map[string]any{"dynamic_templates": []any{map[string]any{"numbers": map[string]any{"match_mapping_type": "long", "mapping": map[string]any{"type": "double"}}}}},
		}
		if err := client.Call(t.Context(), "PUT", "/"+index, mapping, nil); err != nil {
			t.Fatal(err)
		}
		defer client.Call(t.Context(), "DELETE", "/"+index, nil, nil)
		p := must(t, sink.Write, Options{Index: index, ID: "{pk}|{sk}", Version: ByAttribute("rev"), Last: []Field{Text("text", "{pk} {sk}")}})
		for i, text := range []string{"a|b", "<&>\"'\\", "\x00\x1f\u007f\u2028", "é日😀", "%7C", " ", "/../x?y#z"} {
			it := item.Of(item.String("pk", text), item.String("sk", "s"), item.Number("rev", "7"), item.Number("n", "12345678901234567890123456789012345678"), item.String("t", text))
			rec := sluice.Record{EventName: sluice.Insert, Table: "t", New: it}
			ops, err := p.Project(&rec)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Handle(t.Context(), &rec); err != nil {
				t.Fatalf("%d, %q: %v", i, text, err)
			}
			docs, err := client.Get(t.Context(), []document.Ref{ops[0].Ref()})
			if err != nil || !docs[0].Found || docs[0].Version != 7 || string(docs[0].Source) != string(ops[0].Body) {
				t.Errorf("%q: %+v, %v, want %s", text, docs, err, ops[0].Body)
			}
		}
	})
}

// A backfill after lost changes, with a real sink: it repairs documents and tombstones.
func TestBackfillRepairs(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		client, err := opensearch.Connect(opensearch.Connection{URLs: []string{url}})
		if err != nil {
			t.Fatal(err)
		}
		sink, err := opensearch.New(client, opensearch.Options{})
		if err != nil {
			t.Fatal(err)
		}
		index := localtest.Name("backfill")
		if err := client.Call(t.Context(), "PUT", "/"+index, map[string]any{"settings": map[string]any{"number_of_shards": 1, "number_of_replicas": 0}}, nil); err != nil {
			t.Fatal(err)
		}
		defer client.Call(t.Context(), "DELETE", "/"+index, nil, nil)
		p := must(t, sink.Write, Options{Index: index, ID: "{id}", Version: BySequence(), Current: asItIs(note("new"))})
		none := sluice.Item{}
		for _, before := range [][]*sluice.Record{
			{at(0, sluice.Insert, none, note("old"))},
			{at(1, sluice.Remove, note("old"), none)},
		} {
			for _, rec := range append(before, scanned(note("new")), scanned(note("new"))) {
				if err := p.Handle(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
			}
			docs, err := client.Get(t.Context(), []document.Ref{{Index: index, ID: "7"}})
			if err != nil {
				t.Fatal(err)
			}
			mark, err := docs[0].Mark("sluice")
			want, _ := BySequence().of(before[0])
			if err != nil || mark.Deleted != "" || mark.Sequence != want.sequence+docversion.Repaired || !strings.Contains(string(docs[0].Source), `"new"`) {
				t.Errorf("%s, %v, want %q at %s", docs[0].Source, err, "new", want.sequence+docversion.Repaired)
			}
		}
	})
}
