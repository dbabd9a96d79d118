package opensearch

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	v, err := parseObject([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestDiffMapping(t *testing.T) {
	full := func(field string) map[string]any {
		return map[string]map[string]any{"k": {"index": true, "doc_values": true}, "o.k": {"index": true}, "t.raw": {"norms": false}}[field]
	}
	for _, tt := range []struct{ name, want, have, path string }{
		{"equal", `{"properties":{"k":{"type":"keyword"}}}`, `{"properties":{"k":{"type":"keyword"}}}`, ""},
		{"empty", `{}`, `{}`, ""},
		{"another type", `{"properties":{"k":{"type":"keyword"}}}`, `{"properties":{"k":{"type":"text"}}}`, "mappings.properties.k.type"},
		{"a missing field", `{"properties":{"k":{"type":"keyword"}}}`, `{}`, "mappings.properties.k"},
		{"a field that was added", `{}`, `{"properties":{"x":{"type":"keyword"}}}`, ""},
		{"a field that cannot have been added", `{"dynamic":"strict"}`, `{"dynamic":"strict","properties":{"x":{"type":"keyword"}}}`, "mappings.properties.x"},
		{"nor so", `{"dynamic":false}`, `{"dynamic":"false","properties":{"x":{"type":"keyword"}}}`, "mappings.properties.x"},
		{"in an object", `{"properties":{"o":{"properties":{"k":{"type":"keyword"}}}}}`, `{"properties":{"o":{"properties":{"k":{"type":"long"}}}}}`, "mappings.properties.o.properties.k.type"},
		{"an object's type", `{"properties":{"o":{"type":"object"}}}`, `{"properties":{"o":{"properties":{"x":{"type":"long"}}}}}`, ""},
		{"nested is no object", `{"properties":{"o":{"type":"nested"}}}`, `{"properties":{"o":{"properties":{}}}}`, "mappings.properties.o.type"},
		{"a default that is said", `{"properties":{"k":{"type":"keyword","index":true}}}`, `{"properties":{"k":{"type":"keyword"}}}`, ""},
		{"in an object, too", `{"properties":{"o":{"properties":{"k":{"type":"keyword","index":true}}}}}`, `{"properties":{"o":{"properties":{"k":{"type":"keyword"}}}}}`, ""},
		{"no default", `{"properties":{"k":{"type":"keyword","index":false}}}`, `{"properties":{"k":{"type":"keyword"}}}`, "mappings.properties.k.index"},
		{"a parameter more", `{"properties":{"k":{"type":"keyword"}}}`, `{"properties":{"k":{"type":"keyword","ignore_above":256}}}`, "mappings.properties.k.ignore_above"},
		{"numbers as text", `{"properties":{"k":{"type":"keyword","ignore_above":"256"}}}`, `{"properties":{"k":{"type":"keyword","ignore_above":256}}}`, ""},
		{"truth as text", `{"dynamic":true}`, `{"dynamic":"true"}`, ""},
		{"dynamic", `{"dynamic":"strict"}`, `{}`, "mappings.dynamic"},
		{"dynamic more", `{}`, `{"dynamic":"strict"}`, "mappings.dynamic"},
		{"a second field", `{"properties":{"t":{"type":"text","fields":{"raw":{"type":"keyword","norms":false}}}}}`, `{"properties":{"t":{"type":"text","fields":{"raw":{"type":"keyword"}}}}}`, ""},
		{"a second field more", `{"properties":{"t":{"type":"text"}}}`, `{"properties":{"t":{"type":"text","fields":{"raw":{"type":"keyword"}}}}}`, "mappings.properties.t.fields.raw"},
		{"meta more", `{"_meta":{"a":1}}`, `{"_meta":{"a":1,"sluice":{"from":"x"}}}`, ""},
		{"meta", `{"_meta":{"a":{"b":1}}}`, `{"_meta":{"a":{"b":2}}}`, "mappings._meta.a.b"},
		{"dynamic templates", `{"dynamic_templates":[{"a":{"mapping":{"type":"long"}}}]}`, `{"dynamic_templates":[{"a":{"mapping":{"type":"double"}}}]}`, "mappings.dynamic_templates[0].a.mapping.type"},
		{"fewer of them", `{"dynamic_templates":[{"a":{}},{"b":{}}]}`, `{"dynamic_templates":[{"a":{}}]}`, "mappings.dynamic_templates"},
		{"enabled", `{"properties":{"o":{"type":"object","enabled":true}}}`, `{"properties":{"o":{"type":"object"}}}`, ""},
		{"not enabled", `{"properties":{"o":{"type":"object","enabled":false}}}`, `{"properties":{"o":{"type":"object"}}}`, "mappings.properties.o.enabled"},
	} {
		d := diffMapping("mappings", "", parsed(t, tt.want), parsed(t, tt.have), full)
		path := ""
		if d != nil {
			path = d.path
		}
		if path != tt.path {
			t.Errorf("%s: differ at %q, want %q", tt.name, path, tt.path)
		}
	}
}

func TestDiffSettings(t *testing.T) {
	have := map[string]string{"index.gc_deletes": "1h", "index.number_of_shards": "1", "index.uuid": "x"}
	for _, tt := range []struct {
		want map[string]string
		path string
	}{
		{map[string]string{"index.gc_deletes": "3600s"}, ""},
		{map[string]string{"index.gc_deletes": "60s"}, "settings.index.gc_deletes"},
		{map[string]string{"index.number_of_shards": "1"}, ""},
		{map[string]string{"index.number_of_shards": "2"}, "settings.index.number_of_shards"},
		{map[string]string{"index.codec": "zlib"}, "settings.index.codec"},
	} {
		d := diffSettings(tt.want, have)
		if (d == nil) != (tt.path == "") || d != nil && d.path != tt.path {
			t.Errorf("%v: %v, want %q", tt.want, d, tt.path)
		}
	}
}

func TestSettingsAreOneWay(t *testing.T) {
	for _, text := range []string{
		`{"settings":{"index.gc_deletes":"5m","number_of_shards":3,"analysis":{"filter":{"f":{"stopwords":["a","b"]}}}}}`,
		`{"settings":{"index":{"gc_deletes":"5m","number_of_shards":"3","analysis.filter.f":{"stopwords":["a","b"]}}}}`,
		`{"settings":{"gc_deletes":"5m","index.number_of_shards":3,"index":{"analysis":{"filter":{"f":{"stopwords":["a","b"]}}}},"codec":null}}`,
	} {
		flat, err := settings(parsed(t, text))
		if err != nil {
			t.Fatal(err)
		}
		flat = IndexOptions{NoReplicas: true}.withDefaults().complete(flat)
		want := map[string]string{
			"index.gc_deletes": "5m", "index.number_of_shards": "3", "index.number_of_replicas": "0", "index.mapping.total_fields.limit": "1000",
			"index.analysis.filter.f.stopwords.0": "a", "index.analysis.filter.f.stopwords.1": "b",
		}
		if len(flat) != len(want) {
			t.Errorf("%s: %v", text, flat)
		}
		for name, value := range want {
			if flat[name] != value {
				t.Errorf("%s: %s is %q, want %q", text, name, flat[name], value)
			}
		}
	}
	if flat := (IndexOptions{GCDeletes: -1, TotalFields: -1}).withDefaults().complete(map[string]string{}); len(flat) != 0 {
		t.Errorf("left to the cluster: %v", flat)
	}
	if flat := (IndexOptions{GCDeletes: 2 * time.Hour}).withDefaults().complete(map[string]string{}); flat["index.gc_deletes"] != "7200s" {
		t.Errorf("%v", flat)
	}
}

func TestFileErrors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files fstest.MapFS
		want  string
	}{
		{"nothing", fstest.MapFS{}, "neither a file templates/*.json nor indices/*.json"},
		{"syntax", fstest.MapFS{"indices/a.json": {Data: []byte("{\n\n\"a\":}")}}, "indices/a.json: line 3: "},
		{"byte order mark", fstest.MapFS{"indices/a.json": {Data: []byte("\uFEFF{}")}}, "indices/a.json: want a JSON object: a byte order mark (the bytes EF BB BF)"},
		{"a list", fstest.MapFS{"indices/a.json": {Data: []byte("[]")}}, "indices/a.json: want a JSON object"},
		{"null", fstest.MapFS{"indices/a.json": {Data: []byte("null")}}, "not null"},
		{"two objects", fstest.MapFS{"indices/a.json": {Data: []byte("{}{}")}}, "nothing behind it"},
		{"no JSON file", fstest.MapFS{"indices/a.yaml": {Data: []byte("a: 1")}}, "indices/a.yaml is no JSON file"},
		{"a member too many", fstest.MapFS{"indices/a.json": {Data: []byte(`{"mapping":{}}`)}}, `"mapping" is not allowed; want settings, mappings`},
		{"a template's", fstest.MapFS{"templates/a.json": {Data: []byte(`{"mappings":{}}`)}}, `"mappings" is not allowed; want index_patterns, template`},
	} {
		err := newIndices(nil).Apply(t.Context(), tt.files, IndexOptions{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	if err := newIndices(nil).Apply(t.Context(), nil, IndexOptions{GCDeletes: time.Millisecond}); err == nil || !strings.Contains(err.Error(), "GCDeletes is 1ms, want whole seconds") {
		t.Error(err)
	}
	if _, err := IndexBody(fstest.MapFS{}, "a", IndexOptions{}); err == nil || !strings.Contains(err.Error(), "indices/a.json") {
		t.Error(err)
	}
}
