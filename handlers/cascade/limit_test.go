package cascade

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/localtest"
)

// The children to delete, by an attribute of the child and either an attribute of the
// parent or the second of its deletion, 2024-01-01T00:00:10Z.
func TestLimit(t *testing.T) {
	at := time.Date(2024, 1, 1, 0, 0, 10, 0, time.UTC)
	number := func(n int64, add int64) string { return fmt.Sprintf(`{"N":"%d"}`, n+add) }
	version := Limit{Name: "v", From: "info.version"}
	for _, tt := range []struct {
		name  string
		limit Limit
		old   string // attributes of the parent
		child string // the attribute, "" is none
		goes  bool
		fails bool
	}{
		{"the version", version, `"info":{"M":{"version":{"N":"7"}}}`, `{"N":"7"}`, true, false},
		{"the version in other digits", version, `"info":{"M":{"version":{"N":"7"}}}`, `{"N":"7.0"}`, true, false},
		{"an older one", version, `"info":{"M":{"version":{"N":"10"}}}`, `{"N":"9"}`, true, false},
		{"a newer one", version, `"info":{"M":{"version":{"N":"9"}}}`, `{"N":"10"}`, false, false},
		{"text", version, `"info":{"M":{"version":{"S":"b"}}}`, `{"S":"b"}`, true, false},
		{"newer text", version, `"info":{"M":{"version":{"S":"b"}}}`, `{"S":"b1"}`, false, false},
		{"another type", version, `"info":{"M":{"version":{"N":"9"}}}`, `{"S":"1"}`, false, true},
		{"a child without it", version, `"info":{"M":{"version":{"N":"9"}}}`, ``, true, false},
		{"a parent without it", version, `"info":{"M":{"other":{"N":"9"}}}`, `{"N":"10"}`, true, false},
		{"a parent with an empty one", version, `"info":{"M":{"version":{"S":""}}}`, `{"S":"x"}`, true, false},
		{"a second before", Limit{Name: "v", Time: "seconds"}, `"x":{"S":"y"}`, number(at.Unix(), -1), true, false},
		{"that second", Limit{Name: "v", Time: "seconds"}, `"x":{"S":"y"}`, number(at.Unix(), 0), true, false},
		{"a second after", Limit{Name: "v", Time: "seconds"}, `"x":{"S":"y"}`, number(at.Unix(), 1), false, false},
		{"the second's end", Limit{Name: "v", Time: "milliseconds"}, `"x":{"S":"y"}`, number(at.UnixMilli(), 999), true, false},
		{"after the second's end", Limit{Name: "v", Time: "milliseconds"}, `"x":{"S":"y"}`, number(at.UnixMilli(), 1000), false, false},
		{"RFC 3339", Limit{Name: "v", Time: "rfc3339"}, `"x":{"S":"y"}`, `{"S":"2024-01-01T00:00:10Z"}`, true, false},
		{"with a fraction", Limit{Name: "v", Time: "rfc3339"}, `"x":{"S":"y"}`, `{"S":"2024-01-01T00:00:10.999Z"}`, true, false},
		{"the next second", Limit{Name: "v", Time: "rfc3339"}, `"x":{"S":"y"}`, `{"S":"2024-01-01T00:00:11Z"}`, false, false},
		{"the next second's fraction", Limit{Name: "v", Time: "rfc3339"}, `"x":{"S":"y"}`, `{"S":"2024-01-01T00:00:11.001+00:00"}`, false, false},
	} {
		for _, way := range []string{"inline", "by message", "by the condition alone", "by index"} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.table("maps", "user_id", "map_id")
				points := w.table("points", "map_id", "point_id")
				points.index("byMap", 0, "map_id")
				attribute := ""
				if tt.child != "" {
					attribute = `,"v":` + tt.child
				}
				points.put(`{"map_id":{"S":"m-1"},"point_id":{"S":"p"}` + attribute + `}`)
				c := w.config()
				c.Children[0].NotNewer, c.Threshold = tt.limit, DefaultThreshold
				switch way {
				case "by message":
					c.Threshold = 0
				case "by the condition alone": // it is not yet that new when it is read
					c.Query = func(ctx context.Context, q dynamo.Query) (dynamo.Page, error) {
						page, err := w.query(ctx, q)
						for i, it := range page.Items {
							page.Items[i] = it.Without("v")
						}
						return page, err
					}
				case "by index":
					c.Children[0].Index = "byMap"
				}
				x := must(t, c)
				rec := removed("maps", mapKey, strings.TrimSuffix(mapKey, "}")+","+tt.old+"}")
				rec.Created = at
				err := x.Remove(t.Context(), rec)
				if way == "by message" && tt.fails {
					_, err = w.deliver(t.Context(), x.Work)
				} else {
					w.drain(t, x.Work)
				}
				says := err != nil && strings.Contains(err.Error(), `its attribute "v" is of type S, and the limit of NotNewer is of type N`)
				if sluice.IsPermanent(err) != tt.fails || says != tt.fails || !tt.fails && err != nil {
					t.Errorf("%s, %s: %v", tt.name, way, err)
				}
				if gone := len(points.rows) == 0; gone != tt.goes {
					t.Errorf("%s, %s: gone %v, want %v", tt.name, way, gone, tt.goes)
				}
			})
		}
	}
}

// Children that cannot be compared with the limit stay, and are reported. The others
// are deleted.
func TestChildrenOfAnotherType(t *testing.T) {
	w := points(3)
	w.tables["points"].put(`{"map_id":{"S":"m-1"},"point_id":{"S":"a"},"v":{"S":"7"}}`, `{"map_id":{"S":"m-1"},"point_id":{"S":"b"},"v":{"S":"7"}}`)
	c := w.config()
	c.Threshold = DefaultThreshold
	c.Children[0].NotNewer = Limit{Name: "v", From: "version"}
	parent := strings.TrimSuffix(mapKey, "}") + `,"version":{"N":"7"}}`
	var out strings.Builder
	n, err := must(t, c).DryRun(t.Context(), &out, parse(parent))
	if n != 3 || err == nil || !strings.Contains(err.Error(), "planning table points: rows that stay: 2, the first ") {
		t.Errorf("%d, %v: %s", n, err, out.String())
	}
	err = must(t, c).Remove(t.Context(), removed("maps", mapKey, parent))
	if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "2 of 5 deletes in table points failed") || w.left(t) != 2 {
		t.Errorf("%v, %d left", err, w.left(t))
	}
}

// A row that has moved to another parent since the index listed it is no child,
// however old it is.
func TestMovedRowWithALimit(t *testing.T) {
	w := newWorld()
	w.table("maps", "user_id", "map_id")
	p := w.table("points", "id")
	p.index("byMap", 0, "map_id")
	p.put(`{"id":{"S":"a"},"map_id":{"S":"m-1"},"v":{"N":"1"}}`, `{"id":{"S":"b"},"map_id":{"S":"m-1"},"v":{"N":"1"}}`, `{"id":{"S":"c"},"map_id":{"S":"m-1"},"v":{"N":"1"}}`)
	w.query(t.Context(), dynamo.Query{Table: "points", Index: "byMap", Partition: attribute(parse(mapKey), "map_id")})
	p.rows[`{"id":{"S":"b"}}`] = parse(`{"id":{"S":"b"},"map_id":{"S":"m-2"},"v":{"N":"1"}}`)
	p.rows[`{"id":{"S":"c"}}`] = parse(`{"id":{"S":"c"},"map_id":{"S":"m-2"},"v":{"S":"1"}}`)
	c := w.config()
	c.Threshold = DefaultThreshold
	c.Children[0] = Child{
		Table: "points", Key: []string{"id"}, Index: "byMap", Partition: Attr{Name: "map_id", From: "map_id"},
		NotNewer: Limit{Name: "v", From: "version"},
	}
	err := must(t, c).Remove(t.Context(), removed("maps", mapKey, strings.TrimSuffix(mapKey, "}")+`,"version":{"N":"7"}}`))
	if got := p.keys(); err != nil || fmt.Sprint(got) != `[{"id":{"S":"b"}} {"id":{"S":"c"}}]` {
		t.Errorf("%v, left %v", err, got)
	}
}

func TestLimitsThatAreRefused(t *testing.T) {
	for want, tt := range map[string]struct {
		limit Limit
		old   string
	}{
		`attribute "version" of the parent is not known, and there is no image`: {Limit{Name: "v", From: "version"}, ""},
		`attribute "version" of the parent is of type BOOL; a limit is`:         {Limit{Name: "v", From: "version"}, strings.TrimSuffix(mapKey, "}") + `,"version":{"BOOL":true}}`},
		`the record does not say when the parent was deleted`:                   {Limit{Name: "v", Time: "seconds"}, mapKey},
	} {
		w := points(5)
		c := w.config()
		c.Children[0].NotNewer = tt.limit
		rec := removed("maps", mapKey, tt.old)
		rec.Created = time.Time{}
		if err := must(t, c).Remove(t.Context(), rec); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), want) || w.left(t) != 5 || len(w.queue) > 0 {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The limit of a message is that of the deletion that it was sent for.
func TestLimitInMessages(t *testing.T) {
	const sent = `{"kind":"cascade.delete","table":"points","key":{"map_id":"m-1"},"parent":{"table":"maps","key":{"user_id":"u-1","map_id":"m-1"}},"dedupeKey":"maps/u-1/m-1","notNewer":{"v":{"N":"7"}}}`
	w := points(0)
	c := w.config()
	c.Children[0].NotNewer = Limit{Name: "v", From: "version"}
	x := must(t, c)
	rec := removed("maps", mapKey, strings.TrimSuffix(mapKey, "}")+`,"version":{"N":"7"}}`)
	if err := x.Remove(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0s " + sent}, bodies(w)); diff != "" {
		t.Error(diff)
	}
	if err := x.Work(t.Context(), record(w.queue[0].m)); err != nil {
		t.Fatal(err)
	}
	sweep := strings.Replace(strings.Replace(sent, `m-1","notNewer"`, `m-1#sweep","notNewer"`, 1), `"7"}}}`, `"7"}},"sweep":true}`, 1)
	if got := bodies(w); got[1] != "1m0s "+sweep {
		t.Errorf("%s\nwant %s", got[1], sweep)
	}
	// A message without a limit, for example of an earlier configuration, deletes all
	// children.
	w.tables["points"].put(`{"map_id":{"S":"m-1"},"point_id":{"S":"p"},"v":{"N":"9"}}`)
	for body, left := range map[string]int{sent: 1, body: 0} {
		if err := x.Work(t.Context(), record(sluice.Message{Body: body})); err != nil || left == 0 && w.left(t) != 0 {
			t.Errorf("%d left, %v", w.left(t), err)
		}
	}
	for old, new := range map[string]string{`{"v":{"N":"7"}}`: `7`, `{"N":"7"}`: `""`, `"v":`: `"other":`} {
		m := sluice.Message{Body: strings.Replace(sent, old, new, 1)}
		if err := x.Work(t.Context(), record(m)); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "notNewer") {
			t.Errorf("%s: %v", m.Body, err)
		}
	}
}

// A dry run lists only children that would be deleted.
func TestDryRunWithALimit(t *testing.T) {
	w := points(2)
	w.tables["points"].put(`{"map_id":{"S":"m-1"},"point_id":{"S":"new"},"v":{"N":"8"}}`, `{"map_id":{"S":"m-1"},"point_id":{"S":"old"},"v":{"N":"7"}}`)
	c := w.config()
	c.Children[0].NotNewer = Limit{Name: "v", From: "version"}
	var out strings.Builder
	n, err := must(t, c).DryRun(t.Context(), &out, parse(strings.TrimSuffix(mapKey, "}")+`,"version":{"N":"7"}}`))
	if n != 3 || err != nil || strings.Contains(out.String(), `"new"`) {
		t.Errorf("%d, %v: %s", n, err, out.String())
	}
}

// The cascade reads a page, then the parent, then deletes. A parent that came back
// before the page keeps all its children, also newer ones.
func TestTheLookIsAfterThePage(t *testing.T) {
	w := points(30)
	w.onQuery = func(dynamo.Query) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tables["maps"].put(mapKey)
	}
	c := w.config()
	c.Threshold = DefaultThreshold
	if err := must(t, c).Remove(t.Context(), mapRemoved()); !sluice.IsSkip(err) || w.deletes > 0 {
		t.Errorf("%v, %d rows went", err, w.deletes)
	}
}

// One read of the parent serves all requests of the next 100 ms.
func TestLooksAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := points(10_000)
		w.took = 10 * time.Millisecond
		begun := time.Now()
		if err := must(t, w.config()).Work(t.Context(), record(sluice.Message{Body: body})); err != nil {
			t.Fatal(err)
		}
		pages, took := w.queries, time.Since(begun)
		if most := pages + int(took/(100*time.Millisecond)) + 2; w.gets > most {
			t.Errorf("%d looks for %d pages in %v", w.gets, pages, took)
		}
	})
}

// A look is used for 100 ms. There is a request each 60 ms, and looks at 0, 120 and
// 240 ms. The parent is put at 150 ms.
func TestALookIsUsedFor100ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := points(40)
		w.tables["points"].index("byMap", 0, "map_id")
		for i := range 40 {
			w.tables["points"].put(point("m-1", i))
		}
		w.inFlight, w.waits = 1, 60*time.Millisecond
		c := w.config()
		c.Threshold = DefaultThreshold
		c.Children[0].Index = "byMap" // a request for each row
		time.AfterFunc(150*time.Millisecond, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.tables["maps"].put(mapKey)
		})
		if err := must(t, c).Remove(t.Context(), mapRemoved()); !sluice.IsSkip(err) || w.deletes != 3 {
			t.Errorf("%v, %d rows went, want those of 60, 120 and 180 ms", err, w.deletes)
		}
	})
}

func TestTimeBudget(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, tt := range []struct {
		name             string
		budget, deadline time.Duration
		least            time.Duration // of a message
	}{
		{"budget", 2 * time.Minute, 0, 90 * time.Second},
		{"deadline", time.Hour, 100 * time.Second, 70 * time.Second},
		{"a deadline of less than the margin", time.Hour, 20 * time.Second, 10 * time.Second},
		{"a budget of less than the margin", 20 * time.Second, 0, 10 * time.Second},
		{"a budget of less than a call", time.Second, 0, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			const rows = 1500
			w := points(rows)
			w.took = 1500 * time.Millisecond
			c := w.config()
			c.Budget, w.inFlight, c.PageSize = tt.budget, 1, 50
			x := must(t, c)
			x.Remove(t.Context(), mapRemoved())
			sent := bodies(w)
			messages := 0
			for w.left(t) > 0 {
				messages++
				ctx, cancel := context.WithCancel(t.Context())
				if tt.deadline > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), tt.deadline)
				}
				before, begun := w.left(t), time.Now()
				if _, err := w.deliver(ctx, x.Work); err != nil {
					t.Fatal(tt.name, err)
				}
				cancel()
				took := time.Since(begun)
				if w.left(t) == 0 {
					break
				}
				if took < tt.least || took > tt.least+6*w.took {
					t.Errorf("%s: a message took %v", tt.name, took)
				}
				if before == w.left(t) {
					t.Fatal(tt.name, "a message got nowhere")
				}
				if diff := cmp.Diff(sent, bodies(w)); diff != "" {
					t.Fatal(tt.name, diff)
				}
			}
			if messages < 2 {
				t.Errorf("%s: all in one message", tt.name)
			}
			if got := bodies(w); len(got) != 1 || got[0] != "1m0s "+swept {
				t.Errorf("%s: %q", tt.name, got)
			}
		})
	}
}
