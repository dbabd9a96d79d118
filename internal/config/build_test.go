package config

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

func TestRouteOptions(t *testing.T) {
	yes, no := true, false
	full := Route{
		Name: "full", On: Strings{"order#INSERT", "order#SNAPSHOT"}, Changed: Strings{"n"}, ChangedIgnoring: Strings{"at"},
		TTL: "exclude", Regions: Strings{"eu-west-1"}, Attempts: 3, Backoff: &Backoff{First: Duration(time.Second)},
		Timeout: Duration(time.Minute), Concurrency: 5, Rate: &Rate{PerSecond: 2}, MaxAge: Duration(time.Hour), Redrive: &yes,
		Send: &Send{To: "jobs", Body: "new"},
	}
	app := newWorld().build(t, one(full))
	got := *app.Router.Routes()[0]
	got.Handler = nil
	want := sluice.Route{
		Name: "full", Attempts: 3, Backoff: time.Second, MaxBackoff: 30 * time.Second, Timeout: time.Minute, MaxAge: time.Hour,
		Concurrency: 5, Rate: 2, Burst: 1, Needs: item.BothImages | item.AnyImage, Redrive: true, Snapshot: true,
	}
	if got.Name != want.Name || got.Attempts != want.Attempts || got.Backoff != want.Backoff || got.MaxBackoff != want.MaxBackoff || got.Timeout != want.Timeout ||
		got.MaxAge != want.MaxAge || got.Concurrency != want.Concurrency || got.Rate != want.Rate || got.Burst != want.Burst ||
		!got.Needs.Has(item.BothImages) || !got.Redrive || !got.Snapshot {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	for _, tt := range []struct {
		route    Route
		redriven bool
	}{
		{Route{Send: &Send{To: "jobs"}}, false},
		{Route{Send: &Send{To: "jobs"}, Redrive: &yes}, true},
		{Route{Log: &Log{}}, true},
		{Route{Log: &Log{}, Redrive: &no}, false},
		{Route{Project: &Project{Index: "i", ID: "{pk}", Version: "none"}}, false},
		{Route{Project: &Project{Index: "i", ID: "{pk}", Version: "sequence"}}, true},
	} {
		app := newWorld().build(t, one(tt.route))
		if rt := app.Router.Routes()[0]; rt.Redrive != tt.redriven || rt.Snapshot || rt.Name != "one" || app.Routes[0].Name != "one" {
			t.Errorf("%+v: %+v", tt.route, rt)
		}
	}
}

func TestEntityTypes(t *testing.T) {
	for _, tt := range []struct {
		name string
		by   EntityType
		want string // routes of the record
	}{
		{"default", EntityType{}, "order"},
		{"attribute", EntityType{Attribute: "kind"}, "gift"},
		{"key", EntityType{Key: &KeyPattern{Attribute: "pk", Pattern: "{type}-*"}}, "o"},
		{"tables", EntityType{Tables: map[string]string{"orders": "gift"}}, "gift"},
		{"first", EntityType{First: []EntityType{{Attribute: "no"}, {Attribute: "kind"}, {Attribute: "entityType"}}}, "gift"},
	} {
		c := one(Route{Name: "order", On: Strings{"order#INSERT"}, Log: &Log{}})
		c.EntityType = tt.by
		for _, typ := range []string{"gift", "o"} {
			c.Routes = append(c.Routes, Route{Name: typ, On: Strings{typ + "#INSERT"}, Log: &Log{}})
		}
		rec := streamtest.Insert("orders", plain(`{"pk":"o-1","entityType":"order","kind":"gift"}`), streamtest.WithKeys("pk"))
		routes, err := newWorld().build(t, c).Router.Match(nil, &rec)
		if err != nil || len(routes) != 1 || routes[0].Name != tt.want {
			t.Errorf("%s: %v, %v", tt.name, routes, err)
		}
	}
}

func TestBuildSaysWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		route Route
		want  string
	}{
		{Route{}, "routes[0]: it has no handler; want one of send"},
		{Route{Send: &Send{To: "jobs"}, Log: &Log{}}, `routes[0]: send and log are both its handler`},
		{Route{Send: &Send{To: "job"}}, `routes[0].send.to: there is no sink "job"; did you mean jobs?`},
		{Route{Send: &Send{}}, "routes[0].send.to: it is missing"},
		{Route{Send: &Send{To: "jobs", Body: "{pk"}}, "routes[0].send.body: template \"{pk\", byte 0"},
		{Route{Send: &Send{To: "jobs", Body: `{"a":{pk}`}}, "routes[0].send.body: body: it is neither JSON nor a text"},
		{Route{Send: &Send{To: "jobs", Body: `{"a":"{pk"}`}}, "routes[0].send.body: body, byte 5: template"},
		{Route{Send: &Send{To: "jobs", Body: `{"a`}}, "routes[0].send.body: body, byte 1: a string does not end"},
		{Route{Send: &Send{To: "jobs", Body: `{"a":{$what}}`}}, "{$what} is nothing of a record; those are $event"},
		{Route{Send: &Send{To: "jobs", Dedupe: "{pk}"}}, "routes[0].send.dedupe: it is for FIFO queues"},
		{Route{Send: &Send{To: "fifo", Delay: Duration(time.Second)}}, "routes[0].send.delay: "},
		{Route{Send: &Send{To: "jobs", Delay: Duration(time.Hour)}}, `routes[0].send.delay: "1h0m0s" is not what is wanted here`},
		{Route{Send: &Send{To: "fifo", Group: "{"}}, "routes[0].send.group: template"},
		{Route{Log: &Log{Level: "loud"}}, `routes[0].log.level: "loud" is not allowed`},
		{Route{Log: &Log{}, TTL: "maybe"}, `routes[0].ttl: "maybe" is not allowed`},
		{Route{Log: &Log{}, Attempts: -1}, "routes[0].attempts: "},
		{Route{Log: &Log{}, On: Strings{"order"}}, `routes[0].on[0]: pattern "order"`},
		{Route{Project: &Project{To: "jobs"}}, `routes[0].project.to: the sink "jobs" is of sqs, and one of opensearch is needed here; want search`},
		{Route{Project: &Project{Index: "i", ID: "{pk}", Version: "attribute:"}}, `routes[0].project.version: "attribute:" is not allowed`},
		{Route{Project: &Project{Index: "i", ID: "x", Version: "none"}}, "routes[0].project.id: template"},
		{Route{Project: &Project{Index: "i", ID: "{pk}", Version: "none", Fields: Fields{{"a", "{"}}}}, `routes[0].project.fields.a: First and Last: field "a": template`},
	} {
		fails(t, one(tt.route), tt.want)
	}
	twice := one(Route{Name: "a", Log: &Log{}})
	twice.Routes = append(twice.Routes, twice.Routes[0])
	fails(t, twice, `routes[1].name: "a" is the name of routes[0], too`)

	both := one(Route{Log: &Log{}})
	both.Sinks["a"] = Sink{SQS: &SQS{Queue: "a"}, DynamoDB: &DynamoDB{}}
	both.Sinks["b"] = Sink{DynamoDB: &DynamoDB{}}
	both.Sinks["c"] = Sink{}
	both.Sinks["d"] = Sink{SQS: &SQS{Queue: "ftp://x"}}
	both.Sinks["e"] = Sink{OpenSearch: &OpenSearch{URLs: []string{"nowhere"}}}
	both.EntityType = EntityType{Key: &KeyPattern{Attribute: "pk", Pattern: "none"}}
	fails(t, both, "sinks.a: sqs and dynamodb are both its kind", "sinks: a, b are all of dynamodb",
		"sinks.c: it has no kind", "sinks.d.sqs.queue: ", "sinks.e.opensearch.urls[0]: ", "entityType.key.pattern: ")

	if _, err := build(t, one(Route{Log: &Log{}}), Setup{}); err == nil || !strings.Contains(err.Error(), "Setup.AWS is nil") {
		t.Error(err)
	}
}

// A record for which an expression fails is parked, not filtered out.
func TestRouteWhen(t *testing.T) {
	w := newWorld()
	app := w.build(t, one(Route{Name: "big", When: "new.n > 2", Send: &Send{To: "jobs", Body: "{pk}"}}))
	rt := app.Router.Routes()[0]
	if !rt.Needs.Has(item.NewImage) {
		t.Errorf("%+v", rt)
	}
	result := streamtest.Run(t.Context(), app.Router,
		streamtest.Insert("orders", plain(`{"pk":"1","n":3}`)), streamtest.Insert("orders", plain(`{"pk":"2","n":2}`)), streamtest.Insert("orders", plain(`{"pk":"3","n":"x"}`)))
	if len(w.sent) != 1 || w.sent[0].Body != "1" {
		t.Errorf("%+v", w.sent)
	}
	if o := result.Of(2); len(o) != 1 || o[0].Result != flow.Parked {
		t.Errorf("%v", result)
	}
	fails(t, one(Route{When: "new.n >", Log: &Log{}}), "routes[0].when: ")
}

func TestCountWhen(t *testing.T) {
	w := newWorld()
	w.tables.Create("orders", "pk", "")
	w.tables.Create("shops", "shop", "")
	w.tables.Create("markers", "pk", "")
	c := one(Route{On: Strings{"*#INSERT"}, Count: &Count{ID: "o", Markers: "markers", Numbers: []Counter{
		{Table: "shops", Attribute: "big", Key: KeyFrom{"shop": "shop"}, When: "new.n > 2"},
	}}})
	app := w.build(t, c)
	put(t, w.tables, "shops", `{"shop":"a"}`)
	w.tables.Records()
	put(t, w.tables, "orders", `{"pk":"1","shop":"a","n":3}`, `{"pk":"2","shop":"a","n":1}`, `{"pk":"3","shop":"a","n":"x"}`)
	result := streamtest.Run(t.Context(), app.Router, w.tables.Records()...)
	if got := all(w.tables, "shops"); got != `{"big":1,"shop":"a"}` {
		t.Error(got)
	}
	if o := result.Of(2); len(o) != 1 || o[0].Result != flow.Parked {
		t.Errorf("%v", result)
	}
	c.Routes[0].Count.Numbers[0].When = "old.n > 2"
	fails(t, c, "routes[0].count.numbers[0].when: ")
}

// Each filter passes the records that it names, and no others.
func TestFilters(t *testing.T) {
	record := func(event sluice.EventName, region string, ttl bool) *sluice.Record {
		rec := streamtest.Expire("orders", `{"pk":{"S":"1"},"entityType":{"S":"order"}}`)
		if !ttl {
			rec = streamtest.Remove("orders", `{"pk":{"S":"1"},"entityType":{"S":"order"}}`)
		}
		rec.EventName, rec.Region = event, region
		return &rec
	}
	deleted, expired := record(sluice.Remove, "eu-west-1", false), record(sluice.Remove, "us-east-1", true)
	for _, tt := range []struct {
		route            Route
		deleted, expired int
	}{
		{Route{}, 1, 1},
		{Route{TTL: "exclude"}, 1, 0},
		{Route{TTL: "only"}, 0, 1},
		{Route{Regions: Strings{"eu-west-1"}}, 1, 0},
		{Route{Regions: Strings{"eu-west-1", "us-east-1"}}, 1, 1},
		{Route{TTL: "only", Regions: Strings{"eu-west-1"}}, 0, 0},
	} {
		tt.route.Send = &Send{To: "jobs", Body: "keys"}
		for rec, want := range map[*sluice.Record]int{deleted: tt.deleted, expired: tt.expired} {
			w := newWorld()
			if err := w.build(t, one(tt.route)).Router.Dispatch(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			if len(w.sent) != want {
				t.Errorf("ttl %q, regions %v: %d messages for a deletion in %s, want %d", tt.route.TTL, tt.route.Regions, len(w.sent), rec.Region, want)
			}
		}
	}
}

// A record without a valid message fails for good.
func TestNoMessageFailsForGood(t *testing.T) {
	rec := &sluice.Record{EventName: sluice.Insert, EventID: "e", Table: "orders", Keys: plain(`{"pk":"1"}`), New: plain(`{"pk":"1","entityType":"order"}`)}
	for _, send := range []Send{{To: "jobs", Body: `{"a":"{missing}"}`}, {To: "jobs", Body: "{missing}"}, {To: "fifo", Group: "{missing}"}, {To: "fifo", Dedupe: "{missing}"}} {
		w := newWorld()
		if err := w.build(t, one(Route{Send: &send})).Router.Dispatch(t.Context(), rec); !sluice.IsPermanent(err) || len(w.sent) != 0 {
			t.Errorf("%+v: %v, %d messages", send, err, len(w.sent))
		}
	}
}
