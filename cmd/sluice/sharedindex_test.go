package main

import (
	"context"
	"testing"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/config"
)

// Templates that may make one index' name, or lead to one index, are known as
// one.
func TestReach(t *testing.T) {
	r := &reach{known: map[string][]string{}, behind: func(_ context.Context, name string) ([]string, error) {
		return map[string][]string{"catalog": {"catalog-000002"}, "all": {"catalog-000002", "orders-eu"}, "people": {"people-000001"}}[name], nil
	}}
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"catalog", "catalog", true},
		{"catalog", "orders", false},
		{"catalog", "all", true},
		{"catalog", "catalog-000002", true},
		{"catalog", "people", false},
		{"catalog", "{kind}", true},
		{"catalog", "{kind}s", false},
		{"orders-{region|lower}", "all", true},
		{"orders-{region}", "orders-{tenant}", true},
		{"orders-{region}", "products-{region}", false},
		{"{a}-orders", "{b}-products", false},
		{`\{a\}`, "{a}", true},
		{`\{a\}`, "a", false},
	} {
		for range 2 {
			if got, err := r.meet(t.Context(), tt.a, tt.b); got != tt.want || err != nil {
				t.Errorf("%s and %s meet: %v, %v", tt.a, tt.b, got, err)
			}
			tt.a, tt.b = tt.b, tt.a
		}
	}
}

// A document is another application's when no route can have written it.
func TestForeign(t *testing.T) {
	route := func(id string, fields config.Fields, on ...string) config.Route {
		return config.Route{On: on, Project: &config.Project{ID: id, Fields: fields}}
	}
	plain := ownerOf(route("{pk}", nil, "product#*"), "entityType")
	for _, tt := range []struct {
		name, id, body string
		owner          owner
		want           bool
	}{
		{"no mark", "1", `{"a":1}`, plain, false},
		{"its type", "1", `{"entityType":"product"}`, plain, false},
		{"another type", "1", `{"entityType":"invoice"}`, plain, true},
		{"all types", "1", `{"entityType":"invoice"}`, ownerOf(route("{pk}", nil, "*#*"), "entityType"), false},
		{"the type is elsewhere", "1", `{"entityType":"invoice"}`, ownerOf(route("{pk}", nil, "product#*"), ""), false},
		{"the type is another text", "1", `{"entityType":"PRODUCT"}`, ownerOf(route("{pk}", config.Fields{{Name: "entityType", Value: "{kind}"}}, "product#*"), "entityType"), false},
		{"another constant", "1", `{"app":"crm"}`, ownerOf(route("{pk}", config.Fields{{Name: "app", Value: "shop"}}, "product#*"), "entityType"), true},
		{"no constant", "1", `{}`, ownerOf(route("{pk}", config.Fields{{Name: "app", Value: int64(7)}}, "product#*"), "entityType"), true},
		{"its constant", "1", `{"app":7.0}`, ownerOf(route("{pk}", config.Fields{{Name: "app", Value: int64(7)}}, "product#*"), "entityType"), false},
		{"no text", "1", ``, ownerOf(route("{pk}", config.Fields{{Name: "app", Value: "shop"}}, "product#*"), "entityType"), false},
		{"its id", "p-1:2", `{}`, ownerOf(route("p-{pk}:{sk}", nil, "product#*"), ""), false},
		{"another id", "p-1", `{}`, ownerOf(route("p-{pk}:{sk}", nil, "product#*"), ""), true},
		{"another beginning", "o-1:2", `{}`, ownerOf(route("p-{pk}:{sk}", nil, "product#*"), ""), true},
		{"a hash", "sha256:00", `{}`, owner{id: fixedTexts("p-{pk}"), hashes: true}, false},
	} {
		if got := foreign([]owner{tt.owner})(document.Doc{Ref: document.Ref{ID: tt.id}, Source: []byte(tt.body)}); got != tt.want {
			t.Errorf("%s: foreign is %v", tt.name, got)
		}
	}
	if other := ownerOf(route("{pk}", nil, "invoice#*"), "entityType"); foreign([]owner{plain, other})(document.Doc{Source: []byte(`{"entityType":"invoice"}`)}) {
		t.Error("a document of another route is foreign")
	}
}

// Sinks are one cluster by their names or their URLs.
func TestSameCluster(t *testing.T) {
	sink := func(urls ...string) config.Sink { return config.Sink{OpenSearch: &config.OpenSearch{URLs: urls}} }
	cfg := &config.Config{Sinks: map[string]config.Sink{
		"a": sink("https://one:9200", "https://two:9200/"), "b": sink("https://TWO:9200"), "c": sink("https://three:9200"), "q": {},
	}}
	for pair, want := range map[[2]string]bool{{"a", "a"}: true, {"a", "b"}: true, {"b", "a"}: true, {"a", "c"}: false} {
		if got := sameCluster(cfg, pair[0], pair[1]); got != want {
			t.Errorf("%v: %v", pair, got)
		}
	}
}
