package config

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/internal/tabletest"
	"github.com/sluicehq/sluice/item"
)

// maps is a file for users, maps and points, with counts and cascades.
func mapsFile() *Config {
	attr := func(name string) Attr { return Attr{Name: name, From: name} }
	return &Config{
		Source:     Source{Tables: []string{"users", "maps", "points"}},
		EntityType: EntityType{Tables: map[string]string{"users": "user", "maps": "map", "points": "point"}},
		Sinks:      map[string]Sink{"cascades": {SQS: &SQS{Queue: "cascades"}}},
		Routes: []Route{
			{Name: "count points", On: Strings{"point#INSERT", "point#REMOVE"}, Count: &Count{
				ID: "points", Markers: "markers", DeleteOrphans: "maps", Numbers: []Counter{
					{Table: "maps", Attribute: "points", Key: KeyFrom{"user_id": "user_id", "map_id": "map_id"}},
					{Table: "users", Attribute: "points", Key: KeyFrom{"user_id": "user_id"}},
				},
			}},
			{Name: "delete points", On: Strings{"map#REMOVE"}, Cascade: &Cascade{
				Key: Strings{"user_id", "map_id"}, Queue: "cascades", Threshold: new(2),
				Children: []Child{{Table: "points", Key: Strings{"map_id", "point_id"}, Partition: attr("map_id")}},
			}},
			{Name: "delete maps", On: Strings{"user#REMOVE"}, Cascade: &Cascade{
				Key: Strings{"user_id"}, Children: []Child{{Table: "maps", Key: Strings{"user_id", "map_id"}, Partition: attr("user_id")}},
			}},
		},
	}
}

func newMaps(t *testing.T) (*tabletest.World, *App) {
	w := newWorld()
	w.tables.Create("users", "user_id", "")
	w.tables.Create("maps", "user_id", "map_id")
	w.tables.Create("points", "map_id", "point_id")
	w.tables.Create("markers", "pk", "")
	s := w.setup()
	s.Fakes.Send = nil
	queue := w.tables.Queue("cascades")
	s.Fakes.Send = func(ctx context.Context, name string, m sluice.Message) error {
		if name != "cascades" {
			t.Errorf("sent to %s", name)
		}
		return queue(ctx, m)
	}
	app, err := build(t, mapsFile(), s)
	if err != nil {
		t.Fatal(err)
	}
	return w.tables, app
}

func put(t *testing.T, w *tabletest.World, table string, items ...string) {
	t.Helper()
	for _, it := range items {
		if err := w.Put(t.Context(), table, plain(it)); err != nil {
			t.Fatal(err)
		}
	}
}

func run(t *testing.T, w *tabletest.World, app *App) {
	t.Helper()
	if err := w.Run(t.Context(), app.Router.Dispatch, w.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if len(w.Parked) > 0 {
		t.Fatal(w.Parked)
	}
}

func all(w *tabletest.World, tables ...string) string {
	var b strings.Builder
	for _, table := range tables {
		for _, it := range w.Items(table) {
			b.Write(it.AppendJSON(nil, item.JSON{SortedKeys: true}))
		}
	}
	return b.String()
}

func fill(t *testing.T, w *tabletest.World) {
	put(t, w, "users", `{"user_id":"u"}`)
	put(t, w, "maps", `{"user_id":"u","map_id":"m"}`, `{"user_id":"u","map_id":"n"}`)
	put(t, w, "points", `{"map_id":"m","point_id":"1","user_id":"u"}`, `{"map_id":"m","point_id":"2","user_id":"u"}`,
		`{"map_id":"m","point_id":"3","user_id":"u"}`, `{"map_id":"n","point_id":"4","user_id":"u"}`)
}

const counted = `{"points":4,"user_id":"u"}{"map_id":"m","points":3,"user_id":"u"}{"map_id":"n","points":1,"user_id":"u"}`

func TestCountAndCascade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, app := newMaps(t)
		fill(t, w)
		run(t, w, app)
		if got := all(w, "users", "maps"); got != counted {
			t.Fatal(got)
		}
		put(t, w, "points", `{"map_id":"gone","point_id":"5","user_id":"u"}`)
		orphan := w.Records()[0]
		if got, want := explained(t, app, "count points", &orphan), `delete it, since table maps has no {"map_id":"gone","user_id":"u"} [dynamodb points {"map_id":"gone","point_id":"5"}]`; !strings.HasSuffix(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
		w.Replay(orphan)
		run(t, w, app)
		if got := all(w, "users", "maps"); got != counted || strings.Contains(all(w, "points"), "gone") {
			t.Errorf("an orphan: %s", got)
		}

		if err := w.Write(t.Context(), dynamo.Delete("maps", plain(`{"user_id":"u","map_id":"n"}`))); err != nil {
			t.Fatal(err)
		}
		small := w.Records()[0]
		if got := explained(t, app, "delete points", &small); !strings.HasPrefix(got, "delete 1 row of table points [") {
			t.Error(got)
		}
		put(t, w, "maps", `{"user_id":"u","map_id":"n","points":1}`)
		w.Records()
		if err := w.Write(t.Context(), dynamo.Delete("maps", plain(`{"user_id":"u","map_id":"m"}`))); err != nil {
			t.Fatal(err)
		}
		rec := w.Records()[0]
		if got := explained(t, app, "delete points", &rec); got != `delete 3 rows of table points, what a record does not delete itself by queue cascades [dynamodb points {"user_id":"u","map_id":"m"}]` {
			t.Error(got)
		}
		w.Replay(rec)
		run(t, w, app)
		if got := all(w, "users", "maps", "points"); got != `{"points":1,"user_id":"u"}{"map_id":"n","points":1,"user_id":"u"}{"map_id":"n","point_id":"4","user_id":"u"}` {
			t.Error(got)
		}
		if len(w.Sent) != 2 { // a message for the one remaining row of three, and one for the sweep
			t.Errorf("%+v", w.Sent)
		}
		w.Sent[0].ID = "m-1"
		if got := explained(t, app, "cascade.delete", w.Sent[0].Record("arn:aws:sqs:eu-west-1:123456789012:cascades")); got != `delete the rows of table points that the message names, if their parent is gone [dynamodb points {"map_id":"m"}]` {
			t.Error(got)
		}
	})
}

func explained(t *testing.T, app *App, route string, rec *sluice.Record) string {
	t.Helper()
	i := slices.IndexFunc(app.Routes, func(r BuiltRoute) bool { return r.Name == route })
	effects, err := app.Routes[i].Explain(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range effects {
		lines = append(lines, e.Does+" ["+e.Sink+" "+e.Target+" "+e.Key+"]")
	}
	return strings.Join(lines, "; ")
}

func TestCountExplains(t *testing.T) {
	w, app := newMaps(t)
	put(t, w, "points", `{"map_id":"m","point_id":"1","user_id":"u"}`)
	rec := w.Records()[0]
	put(t, w, "maps", `{"user_id":"u","map_id":"m"}`)
	want := `add 1 to points of an item of table maps [dynamodb maps {"map_id":"m","user_id":"u"}]; add 1 to points of an item of table users [dynamodb users {"user_id":"u"}]`
	if got := explained(t, app, "count points", &rec); got != want || all(w, "markers") != "" {
		t.Error(got)
	}
	rec.New = plain(`{"map_id":"m","point_id":"1"}`) // a point without a user
	if _, err := app.Routes[0].Explain(t.Context(), &rec); err == nil || !strings.Contains(err.Error(), "a key of table maps is made of") {
		t.Error(err)
	}
	rec.New = plain(`{"map_id":"m","point_id":"1","user_id":"u"}`)
	down := errors.New("down")
	w.ReadFault = func() error { return down }
	if _, err := app.Routes[0].Explain(t.Context(), &rec); !errors.Is(err, down) {
		t.Error(err)
	}
}

// A recount finds the points of a map by their key, the points of a user through the
// maps.
func TestRecounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, app := newMaps(t)
		fill(t, w) // without counting
		put(t, w, "points", `{"map_id":"m","point_id":"9","user_id":"somebody else"}`)
		parents := func(table string) func(func(sluice.Item, error) bool) {
			return func(yield func(sluice.Item, error) bool) {
				for _, it := range w.Items(table) {
					if !yield(it, nil) {
						return
					}
				}
			}
		}
		var tables []string
		for _, r := range app.Routes[0].Recounts {
			tables = append(tables, r.Table)
			done, err := r.Run(t.Context(), parents(r.Table))
			if err != nil || done.Parents != done.Corrected || done.Parents == 0 {
				t.Errorf("%s: %+v, %v", r.Table, done, err)
			}
		}
		if got := all(w, "users", "maps"); got != counted || !slices.Equal(tables, []string{"maps", "users"}) {
			t.Errorf("%s %s", tables, got)
		}
	})
}

func TestRecountsByIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.tables.Create("orders", "pk", "")
		w.tables.Create("shops", "shop", "")
		w.tables.Create("markers", "pk", "")
		c := one(Route{On: Strings{"order#*"}, Count: &Count{ID: "orders", Markers: "markers", Numbers: []Counter{
			{Table: "shops", Attribute: "orders", Of: "n", Key: KeyFrom{"shop": "byshopPK"}, Index: "byshop", Partition: "byshopPK"},
		}}})
		app := w.build(t, c)
		put(t, w.tables, "shops", `{"shop":"a","orders":1}`)
		put(t, w.tables, "orders", `{"pk":"1","entityType":"order","byshopPK":"a","byshopSK":"1","n":7}`, `{"pk":"2","entityType":"draft","byshopPK":"a","byshopSK":"2","n":5}`)
		done, err := app.Routes[0].Recounts[0].Run(t.Context(), func(yield func(sluice.Item, error) bool) { yield(plain(`{"shop":"a"}`), nil) })
		if err != nil || done != (rollup.Recounted{Parents: 1, Corrected: 1}) || all(w.tables, "shops") != `{"orders":7,"shop":"a"}` {
			t.Errorf("%+v, %v, %s", done, err, all(w.tables, "shops"))
		}
		c.Routes[0].Count.Numbers[0].Index, c.Routes[0].Count.Numbers[0].Partition = "", ""
		_, err = w.build(t, c).Routes[0].Recounts[0].Run(t.Context(), func(yield func(sluice.Item, error) bool) { yield(plain(`{"shop":"a"}`), nil) })
		if err == nil || !strings.Contains(err.Error(), "routes[0].count.numbers[0].index: route one: a recount does not find the children") {
			t.Error(err)
		}
	})
}

// A condition that fails for a child ends the recount: without the child, it would
// lower a right counter.
func TestRecountEndsWhereAConditionFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.tables.Create("orders", "shop", "id")
		w.tables.Create("shops", "shop", "")
		w.tables.Create("markers", "pk", "")
		c := one(Route{Name: "orders of shops", On: Strings{"order#*"}, Count: &Count{ID: "orders", Markers: "markers", Numbers: []Counter{
			{Table: "shops", Attribute: "all", Key: KeyFrom{"shop": "shop"}},
			{Table: "shops", Attribute: "large", Key: KeyFrom{"shop": "shop"}, When: "new.total > 5"},
		}}})
		recounts := w.build(t, c).Routes[0].Recounts
		put(t, w.tables, "shops", `{"shop":"a","all":3,"large":3}`)
		put(t, w.tables, "orders", `{"shop":"a","id":"1","entityType":"order","total":7}`, `{"shop":"a","id":"2","entityType":"order","total":"s3cret"}`,
			`{"shop":"a","id":"3","entityType":"order","total":8}`, `{"shop":"a","id":"4","entityType":"draft","total":"not asked for"}`)
		parents := func(yield func(sluice.Item, error) bool) { yield(plain(`{"shop":"a"}`), nil) }
		if done, err := recounts[0].Run(t.Context(), parents); err != nil || done.Right != 1 {
			t.Errorf("%+v, %v", done, err) // this number has no condition
		}
		done, err := recounts[1].Run(t.Context(), parents)
		if got := all(w.tables, "shops"); got != `{"all":3,"large":3,"shop":"a"}` || done.Corrected+done.Right != 0 {
			t.Errorf("it is done as %+v and leaves %s", done, got)
		}
		if want := `route "orders of shops", routes[0].count.numbers[1].when: whether the item {"shop":{"S":"a"},"id":{"S":"2"}} of table orders counts cannot be told`; err == nil ||
			!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "a text > a number") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v\nwant %s", err, want)
		}
		put(t, w.tables, "orders", `{"shop":"a","id":"2","entityType":"order","total":4}`)
		put(t, w.tables, "shops", `{"shop":"a","all":3,"large":9}`)
		if done, err := recounts[1].Run(t.Context(), parents); err != nil || done.Corrected != 1 || all(w.tables, "shops") != `{"all":3,"large":2,"shop":"a"}` {
			t.Errorf("mended: %+v, %v, %s", done, err, all(w.tables, "shops"))
		}
	})
}

func TestAppOfTables(t *testing.T) {
	_, app := newMaps(t)
	var routes []string
	for i, r := range app.Routes {
		rt := app.Router.Routes()[i]
		routes = append(routes, r.Name+" "+r.Kind)
		if rt.Name != r.Name || rt.Redrive != (r.Name != "cascade.delete") || (r.Cascade != nil) != strings.HasPrefix(r.Name, "delete") || len(r.Recounts) != map[string]int{"count points": 2}[r.Name] {
			t.Errorf("%+v %+v", r, rt)
		}
	}
	if got := strings.Join(routes, ", "); got != "count points count, delete points cascade, delete maps cascade, cascade.delete cascade" {
		t.Error(got)
	}
	if !slices.Equal(app.Queues, []string{"cascades"}) || !slices.Equal(app.Tables, []string{"users", "maps", "points"}) {
		t.Errorf("%v %v", app.Queues, app.Tables)
	}
	if rt := app.Router.Routes()[0]; !rt.Needs.Has(item.BothImages) {
		t.Errorf("%+v", rt)
	}
}

// A queue's name and its URL are the same queue.
func TestQueuesAreConsumedOnce(t *testing.T) {
	c := mapsFile()
	c.Source.Queues = []string{"https://sqs.us-east-1.amazonaws.com/123456789012/cascades", "others"}
	c.Routes = append(c.Routes, Route{Name: "log", On: Strings{"job#MESSAGE"}, Log: &Log{}}, Route{Name: "s", On: Strings{"map#INSERT"}, Send: &Send{To: "cascades"}})
	if app := newWorld().build(t, c); !slices.Equal(app.Queues, c.Source.Queues) {
		t.Errorf("%q", app.Queues)
	}
}

// Queues with one name in two Regions or accounts are different queues.
func TestQueuesOfOneName(t *testing.T) {
	c := mapsFile()
	c.Source.Queues = []string{"https://sqs.us-east-1.amazonaws.com/123456789012/jobs", "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"}
	if app := newWorld().build(t, c); !slices.Equal(app.Queues, append(c.Source.Queues, "cascades")) {
		t.Errorf("%q", app.Queues)
	}
}

func TestTablesSayWhatIsWrong(t *testing.T) {
	for want, edit := range map[string]func(*Config){
		"routes[0].on[0]: count has no use for SNAPSHOT; want INSERT":                                                  func(c *Config) { c.Routes[0].On = Strings{"point#SNAPSHOT"} },
		"routes[1].on[0]: cascade is for items that are deleted":                                                       func(c *Config) { c.Routes[1].On = Strings{"map#*"} },
		"routes[0].count.deleteOrphans: \"map\" is not a table of numbers":                                             func(c *Config) { c.Routes[0].Count.DeleteOrphans = "map" },
		"routes[0].count.deleteOrphans: the key of the parents in table maps is taken from \"a.b\"":                    func(c *Config) { c.Routes[0].Count.Numbers[0].Key["map_id"] = "a.b" },
		"routes[0].count.deleteOrphans: orphans are deleted as they are inserted, and on (point#REMOVE) has no INSERT": func(c *Config) { c.Routes[0].On = Strings{"point#REMOVE"} },
		"routes[0].count.deleteOrphans: numbers[0] and numbers[1] have different parents in table maps":                func(c *Config) { c.Routes[0].Count.Numbers[1].Table = "maps" },
		"routes[0].count.id: it is missing":                                                                            func(c *Config) { c.Routes[0].Count.ID = "" },
		"routes[0].count.numbers[1].key: it is missing":                                                                func(c *Config) { c.Routes[0].Count.Numbers[1].Key = nil },
		"routes[1].cascade.table: it is missing, and neither source nor entityType leaves only one":                    func(c *Config) { c.EntityType.Tables = nil },
		"routes[1].cascade.table: it is missing, and neither source nor entityType leaves only one; say which has the parents\n": func(c *Config) {
			c.EntityType.Tables, c.Source = nil, Source{Queues: Strings{"jobs"}}
		},
		"routes[1].cascade.queue: there is no sink \"no\"; want cascades": func(c *Config) { c.Routes[1].Cascade.Queue = "no" },
		"is a FIFO queue, which cannot delay single messages":             func(c *Config) { c.Sinks["cascades"].SQS.Queue = "x.fifo" },
		"routes[2].cascade.threshold: it is for a cascade with a queue":   func(c *Config) { c.Routes[2].Cascade.Threshold = new(0) },
		"routes[1].cascade.children[0].key: it is missing":                func(c *Config) { c.Routes[1].Cascade.Children[0].Key = nil },
		"routes[3].send.to: the queue cascades is consumed by the application itself, and no route takes MESSAGE": func(c *Config) {
			c.Routes = append(c.Routes, Route{Name: "s", On: Strings{"map#INSERT"}, Send: &Send{To: "cascades"}})
		},
		"two Cascades of table maps have children of the name \"\"": func(c *Config) {
			again := c.Routes[1]
			again.Name = "again"
			c.Routes = append(c.Routes, again)
		},
	} {
		c := mapsFile()
		edit(c)
		fails(t, c, want)
	}
}
