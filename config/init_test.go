package config

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Whatever is asked for, the file is valid, and says what was asked for.
func TestInit(t *testing.T) {
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
			o.Key = nil // with a queue or a cluster, these tell the handlers
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
			o.Types[i] = strings.ReplaceAll(o.Types[i], " ", "-") // patterns have none
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
			if route.kinds()[0] != o.Handlers[i] {
				t.Fatalf("%+v\n%s", o, text)
			}
		}
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
