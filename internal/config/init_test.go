package config

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/localtest"
)

// For all options the file is valid, and has their values.
func TestInit(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	check := validator(t)
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	some := func(most int, from ...string) []string {
		r.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
		return from[:r.IntN(min(most, len(from))+1)]
	}
	for range 500 {
		o := InitOptions{
			Name:       pick("", "shop", "true", "it's: \"a\" $name ${X} # {}", "5", "ünï"),
			Tables:     some(3, "orders", "customers", "arn:aws:dynamodb:eu-central-1:1:table/lines/stream/2024-01-01T00:00:00.000", "0123", "null"),
			Start:      pick("", "LATEST", "TRIM_HORIZON"),
			EntityType: pick("", "kind", "the: type", "{x}", "12"),
			Types:      some(3, "order", "Ed-Fi School", "a#b", "no", "日本", "12"),
			Key:        some(2, "PK", "SK", "a:b", "a|b", "{c}", `d\`, "5", "on"),
			Handlers:   some(5, slices.Clone(InitHandlers)...),
			Queue:      pick("", "jobs", "https://sqs.us-east-1.amazonaws.com/123/jobs", "123"),
			Cluster:    pick("", "https://u:p$a@search.example.com:9200/x"),
			Schema:     pick("", "../schema.json"),
		}
		switch has := func(h string) bool { return slices.Contains(o.Handlers, h) }; {
		case len(o.Handlers) == 0:
			o.Key = nil // with a queue or a cluster, these decide the handlers
		default:
			if !has("send") && !has("cascade") {
				o.Queue = ""
			}
			if !has("project") {
				o.Cluster = ""
			}
			if !has("project") && !has("cascade") {
				o.Key = nil
			}
		}
		for i := range o.Types {
			o.Types[i] = strings.ReplaceAll(o.Types[i], " ", "-") // patterns have no spaces
		}
		text, err := Init(o)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		if err := check(text); err != nil {
			t.Fatalf("%+v: %v\n%s", o, err, text)
		}
		c, err := Parse("sluice.yaml", "", text, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if _, err := c.Build(t.Context(), newWorld().setup()); err != nil {
			t.Fatalf("%+v: %v\n%s", o, err, text)
		}
		o = o.withDefaults()
		if c.Name != o.Name || strings.Join(c.Source.Tables, "\n") != strings.Join(o.Tables, "\n") || c.EntityType.Attribute != o.EntityType || len(c.Routes) != len(o.Handlers) {
			t.Fatalf("%+v\n%s", o, text)
		}
		for i, route := range c.Routes {
			if route.Kind() != o.Handlers[i] {
				t.Fatalf("%+v\n%s", o, text)
			}
		}
	}
}

// Each chosen handler has its effect for an item that is inserted and removed.
func TestInitRuns(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for set := range 1 << len(InitHandlers) {
		for _, queue := range []string{"", "todo", "todo.fifo", "https://sqs.us-east-1.amazonaws.com/123456789012/todo"} {
			o := InitOptions{Tables: []string{"shop-orders", "lines"}, Key: []string{"pk", "sk"}, Queue: queue}
			for i, h := range InitHandlers {
				if set&(1<<i) != 0 {
					o.Handlers = append(o.Handlers, h)
				}
			}
			has := func(h string) bool { return slices.Contains(o.Handlers, h) }
			if !has("project") && !has("cascade") {
				o.Key = nil
			}
			if !has("send") && !has("cascade") {
				o.Queue = ""
			}
			text, err := Init(o)
			if queue == "todo.fifo" && has("cascade") && !has("send") {
				if err == nil || !strings.Contains(err.Error(), "FIFO") {
					t.Errorf("%+v: %v", o, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%+v: %v", o, err)
			}
			c, err := Parse("f", "", text, nil)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) { initRuns(t, c, has) })
		}
	}
}

func initRuns(t *testing.T, c *Config, has func(string) bool) {
	w := newWorld()
	w.tables.Create("shop-orders", "pk", "sk")
	w.tables.Create("children", "parentId", "id")
	w.tables.Create("parents", "id", "")
	w.tables.Create("markers", "pk", "")
	app := w.build(t, c)
	put(t, w.tables, "parents", `{"id":"p"}`)
	put(t, w.tables, "children", `{"parentId":"1","id":"x"}`, `{"parentId":"2","id":"y"}`)
	w.tables.Records()
	put(t, w.tables, "shop-orders", `{"pk":"1","sk":"a","entityType":"order","parentId":"p"}`, `{"pk":"1","sk":"b","entityType":"other","parentId":"p"}`)
	run(t, w.tables, app)
	sent, documents, parents := 0, 0, `{"id":"p"}`
	if has("send") {
		sent = 1
	}
	if has("project") {
		documents = 1
	}
	if has("count") {
		parents = `{"id":"p","itemCount":1}`
	}
	if len(w.sent) != sent || len(w.index.Docs("order")) != documents || all(w.tables, "parents") != parents {
		t.Errorf("%v: sent %+v, documents %v, %s", c.Routes, w.sent, w.index.Docs("order"), all(w.tables, "parents"))
	}
	if err := w.tables.Write(t.Context(), dynamo.Delete("shop-orders", plain(`{"pk":"1","sk":"a"}`))); err != nil {
		t.Fatal(err)
	}
	run(t, w.tables, app)
	children := `{"id":"x","parentId":"1"}{"id":"y","parentId":"2"}`
	if has("cascade") {
		children = `{"id":"y","parentId":"2"}`
	}
	if has("count") {
		parents = `{"id":"p","itemCount":0}`
	}
	if len(w.index.Docs("order")) != 0 || all(w.tables, "parents") != parents || all(w.tables, "children") != children {
		t.Errorf("%v: documents %v, %s", c.Routes, w.index.Docs("order"), all(w.tables, "parents", "children"))
	}
}

func TestInitRefuses(t *testing.T) {
	for _, tt := range []struct {
		o    InitOptions
		want string
	}{
		{InitOptions{Handlers: []string{"sned"}}, `there is no handler "sned"; did you mean send?`},
		{InitOptions{Handlers: []string{"log", "log"}}, "twice"},
		{InitOptions{Handlers: []string{"project"}, Key: []string{"a", "b", "c"}}, "one key attribute or two"},
		{InitOptions{Tables: []string{"a b"}}, "is no table's name"},
		{InitOptions{Types: []string{"a b"}}, "routes[0].on"},
		{InitOptions{Start: "NOW"}, "TRIM_HORIZON or LATEST"},
		{InitOptions{Handlers: []string{"project"}, Cluster: "nowhere"}, "is no URL"},
		{InitOptions{Handlers: []string{"send"}, Queue: "a.b"}, "is no queue"},
		{InitOptions{Handlers: []string{"log"}, Queue: "jobs"}, "the queue has no effect: it is of send and cascade, and the handlers are log"},
		{InitOptions{Queue: "jobs", Key: []string{"pk"}}, "the key has no effect: it is of project and cascade, and the handlers are send"},
		{InitOptions{Handlers: []string{"send", "count"}, Cluster: "http://search:9200"}, "the cluster has no effect"},
		{InitOptions{Schema: "x\ny"}, "space"},
	} {
		if _, err := Init(tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v; want %s", tt.o, err, tt.want)
		}
	}
}

// An error about a flag names no place in a file that nobody has seen.
func TestInitErrorsHaveNoPlace(t *testing.T) {
	_, err := Init(InitOptions{Cluster: "nowhere"})
	if err == nil || !strings.HasPrefix(err.Error(), "sinks.search.opensearch.urls[0]: it is no URL") {
		t.Errorf("%v", err)
	}
}

// Variables in a cluster's URL become variables of the file. Any other dollar sign is a
// character.
func TestInitVariables(t *testing.T) {
	set := map[string]string{"SEARCH": "https://search.example.com", "PASSWORD": "secret"}
	for _, tt := range []struct{ cluster, written, read string }{
		{"${SEARCH}", `urls: ["${SEARCH}"]`, "https://search.example.com"},
		{"${NONE:-http://search:9200}", `urls: ["${NONE:-http://search:9200}"]`, "http://search:9200"},
		{"https://u:${PASSWORD}@search:9200", `urls: ["https://u:${PASSWORD}@search:9200"]`, "https://u:secret@search:9200"},
		{"https://u:p$a@search:9200", `urls: ["https://u:p$$a@search:9200"]`, "https://u:p$a@search:9200"},
	} {
		text, err := Init(InitOptions{Cluster: tt.cluster})
		if err != nil {
			t.Errorf("%s: %v", tt.cluster, err)
			continue
		}
		if !strings.Contains(string(text), tt.written) {
			t.Errorf("%s: want %s in\n%s", tt.cluster, tt.written, text)
		}
		c, err := Parse("f", "", text, func(name string) (string, bool) { v, ok := set[name]; return v, ok })
		if err != nil {
			t.Errorf("%s: %v", tt.cluster, err)
		} else if got := c.Sinks["search"].OpenSearch.URLs[0]; got != tt.read {
			t.Errorf("%s: read as %s, want %s", tt.cluster, got, tt.read)
		}
	}
}

// An index of several types has a name for all of them, not the first type's.
func TestInitIndex(t *testing.T) {
	for _, tt := range []struct {
		types, tables []string
		want          string
	}{
		{[]string{"Order"}, []string{"shop", "lines"}, "order"},
		{[]string{"order", "invoice"}, []string{"shop"}, "shop"},
		{[]string{"order", "invoice"}, []string{"shop", "lines"}, "items"},
	} {
		text, err := Init(InitOptions{Types: tt.types, Tables: tt.tables, Handlers: []string{"project"}})
		if err != nil || !strings.Contains(string(text), "      index: "+tt.want+"\n") {
			t.Errorf("%v of %v: %v, want the index %s in\n%s", tt.types, tt.tables, err, tt.want, text)
		}
	}
}
