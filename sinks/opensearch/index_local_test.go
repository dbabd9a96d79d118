//go:build integration

package opensearch

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/sluicehq/sluice/internal/localtest"
)

func connectIndices(t *testing.T, url string) (*Client, *Indices, string) {
	client, err := Connect(Connection{URLs: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	name := localtest.Name("idx")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		c := newIndices(client)
		for n := range 4 {
			if err := c.Delete(ctx, fmt.Sprintf("%s-%06d", name, n)); err != nil {
				t.Error(err)
			}
		}
		client.Call(ctx, "DELETE", "/_index_template/"+name, nil, nil)
	})
	return client, newIndices(client), name
}

const mapping = `{"settings":{"number_of_shards":2,"analysis":{"analyzer":{"folded":{"tokenizer":"standard","filter":["lowercase","asciifolding"]}}}},
	"mappings":{"_meta":{"owner":"us"},"date_detection":false,
	"dynamic_templates":[{"numbers":{"match_mapping_type":"long","mapping":{"type":"double"}}}],
	"properties":{"name":{"type":"text","analyzer":"folded","fields":{"raw":{"type":"keyword","ignore_above":256,"doc_values":true}}},
	"price":{"type":"double","index":true},"tags":{"type":"object","enabled":true},"parts":{"type":"nested","properties":{"n":{"type":"integer"}}}}}}`

// Apply makes the index of the file. A second Apply does nothing, also after documents
// have added fields. It reports differences, and changes nothing.
func TestApplyRealServer(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		client, c, name := connectIndices(t, url)
		files := fstest.MapFS{
			"indices/" + name + ".json":   {Data: []byte(mapping)},
			"templates/" + name + ".json": {Data: []byte(`{"index_patterns":["` + name + `.t-*"],"priority":7,"template":{"mappings":{"dynamic":true,"properties":{"k":{"type":"keyword","index":true}}}}}`)},
		}
		o := IndexOptions{NoReplicas: true}

		// Several daemons start at once.
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := c.Apply(t.Context(), files, o); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		behind, err := c.Behind(t.Context(), name, name+".also")
		if err != nil || len(behind) != 1 || len(behind[name]) != 1 || behind[name][0] != name+"-000001" {
			t.Fatalf("behind: %v, %v", behind, err)
		}
		var is map[string]struct{ Settings map[string]any }
		if err := client.Call(t.Context(), "GET", "/"+name+"-000001/_settings?flat_settings=true", nil, &is); err != nil {
			t.Fatal(err)
		}
		for setting, want := range map[string]string{gcDeletes: "3600s", totalFields: "1000", replicas: "0", "index.number_of_shards": "2"} {
			if got := is[name+"-000001"].Settings[setting]; got != want {
				t.Errorf("%s is %q, want %q", setting, got, want)
			}
		}
		doc := `{"name":"a","price":1,"tags":{"x":1},"parts":[{"n":1,"m":"x"}],"new":{"er":"x"}}`
		if err := client.Call(t.Context(), "PUT", "/"+name+"/_doc/1?refresh=true", []byte(doc), nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(t.Context(), files, o); err != nil {
			t.Error(err)
		}

		for _, tt := range []struct{ file, old, new, path string }{
			{"indices", `"type":"double","index":true`, `"type":"float","index":true`, "mappings.properties.price.type"},
			{"indices", `"number_of_shards":2`, `"number_of_shards":3`, "settings.index.number_of_shards"},
			{"indices", `"number_of_shards":2`, `"number_of_shards":2,"gc_deletes":"2h"`, "settings.index.gc_deletes"},
			{"indices", `"ignore_above":256`, `"ignore_above":512`, "mappings.properties.name.fields.raw.ignore_above"},
			{"indices", `"price":{`, `"weight":{"type":"long"},"price":{`, "mappings.properties.weight"},
			{"templates", `"type":"keyword"`, `"type":"text"`, "template.mappings.properties.k.type"},
			{"templates", `"priority":7`, `"priority":8`, "priority"},
			{"templates", `"template":{`, `"template":{"settings":{"number_of_shards":2},`, "template.settings.index.number_of_shards"},
		} {
			path := tt.file + "/" + name + ".json"
			was := files[path]
			text := strings.Replace(string(was.Data), tt.old, tt.new, 1)
			if text == string(was.Data) {
				t.Fatalf("%q is not in %s", tt.old, path)
			}
			files[path] = &fstest.MapFile{Data: []byte(text)}
			want := " is not what " + path + " says: at " + tt.path + " it has "
			if err := c.Apply(t.Context(), files, o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want a difference at %s", tt.new, err, tt.path)
			}
			told := 0
			if err := c.Apply(t.Context(), files, IndexOptions{NoReplicas: true, Different: func(error) { told++ }}); err != nil || told != 1 {
				t.Errorf("%s: told %d, %v", tt.new, told, err)
			}
			files[path] = was
		}
		if err := c.Apply(t.Context(), files, o); err != nil {
			t.Errorf("something has changed: %v", err)
		}
	})
}

// The operations of aliases that package reindex needs.
func TestAliasesRealServer(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		ctx := t.Context()
		client, c, name := connectIndices(t, url)
		one, two := name+"-000001", name+"-000002"
		for _, index := range []string{one, two} {
			body := `{"settings":{"number_of_replicas":0},"aliases":{"` + map[string]string{one: name, two: name + ".deletes"}[index] + `":{}},"mappings":{"_meta":{"a":{"b":[1]}}}}`
			if created, err := c.Create(ctx, index, []byte(body)); err != nil || !created {
				t.Fatal(created, err)
			}
			if created, err := c.Create(ctx, index, []byte(body)); err != nil || created {
				t.Fatal(created, err)
			}
		}
		want := func(alias string, index ...string) {
			t.Helper()
			found, err := c.Behind(ctx, name, name+".also", name+".deletes")
			if err != nil || strings.Join(found[alias], " ") != strings.Join(index, " ") {
				t.Errorf("%v, %v, want %s to lead to %q", found, err, alias, index)
			}
		}
		want(name, one)
		want(name+".deletes", two)
		if err := c.Point(ctx, map[string]string{name + ".deletes": two}, map[string]string{name + ".also": two}); err != nil {
			t.Fatal(err)
		}
		want(name + ".deletes")
		want(name+".also", two)
		filtered := fmt.Appendf(nil, `{"actions":[{"add":{"index":%q,"alias":%q,"filter":{"term":{"n":9007199254740993}},"search_routing":"r","is_write_index":true}}]}`, one, name)
		if err := client.Call(ctx, "POST", "/_aliases", filtered, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Point(ctx, map[string]string{name: one, name + ".also": two}, map[string]string{name: two, name + ".also": one}); err != nil {
			t.Fatal(err)
		}
		want(name, two)
		var is map[string]struct {
			Aliases map[string]json.RawMessage
		}
		if err := client.Call(ctx, "GET", "/"+two+"/_alias/"+name, nil, &is); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{`9007199254740993`, `"search_routing":"r"`, `"is_write_index":true`} {
			if got := string(is[two].Aliases[name]); !strings.Contains(got, part) {
				t.Errorf("the alias that was moved is %s, without %s", got, part)
			}
		}
		// Somebody else was faster: nothing of it is done.
		if err := c.Point(ctx, map[string]string{name: one, name + ".also": one}, map[string]string{name: one, name + ".deletes": one}); err == nil {
			t.Error("moved what was not there")
		}
		want(name, two)
		want(name+".also", one)
		want(name + ".deletes")

		meta, found, err := c.Meta(ctx, one)
		if err != nil || !found || string(meta["a"]) != `{"b":[1]}` {
			t.Fatalf("%s, %v, %v", meta, found, err)
		}
		meta["c"] = []byte(`"d"`)
		if err := c.SetMeta(ctx, one, meta); err != nil {
			t.Fatal(err)
		}
		if meta, _, err := c.Meta(ctx, one); err != nil || len(meta) != 2 || string(meta["c"]) != `"d"` {
			t.Errorf("%s, %v", meta, err)
		}
		if _, found, err := c.Meta(ctx, name+"-000003"); err != nil || found {
			t.Errorf("%v, %v", found, err)
		}
		if _, _, err := c.Meta(ctx, name); err == nil {
			t.Error("an alias has the _meta of an index")
		}

		for i := range 5 {
			body := fmt.Appendf(nil, `{"n":%d}`, i)
			if err := client.Call(ctx, "PUT", fmt.Sprintf("/%s/_doc/d%d?version=%d&version_type=external&routing=r", one, i, i+1), body, nil); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := c.Count(ctx, one, ""); err != nil || n != 5 {
			t.Errorf("%d, %v", n, err)
		}
		last, err := c.Sample(ctx, one, 2, true)
		if err != nil || len(last) != 2 || last[0].ID != "d4" || last[0].Version != 5 || last[0].Routing != "r" || last[1].ID != "d3" {
			t.Errorf("%+v, %v", last, err)
		}
		if any, err := c.Sample(ctx, one, 100, false); err != nil || len(any) != 5 {
			t.Errorf("%+v, %v", any, err)
		}
		for range 2 {
			if err := c.Delete(ctx, one); err != nil {
				t.Error(err)
			}
		}
		want(name + ".also")
	})
}
