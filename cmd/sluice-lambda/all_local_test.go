//go:build integration

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/streamtest"
)

// A file with every kind of route runs as a function that is killed again and
// again as it writes, and whose servers fail. In the end everything was done,
// each in its order, and the metrics say so.
func TestAllRoutesAsAFunction(t *testing.T) {
	w := newWorld(t)
	// A function makes no index, which a daemon does.
	w.http("PUT", w.search+"-000001", `{"settings":{"number_of_replicas":0},"mappings":{"dynamic":false},"aliases":{"`+w.name+`":{}}}`)
	f := w.triggered()
	defer f.end()
	w.proxy["search"].Fail(streamtest.ProxyFault{Match: bulk, After: 1, Times: 8, Status: 503})
	w.proxy["sqs"].Fail(streamtest.ProxyFault{Op: "SendMessageBatch", After: 2, Times: 4, Status: 500})
	w.killAt(5, 12)
	w.fill()
	localtest.Await(t, "all is handled", func() string {
		f.round()
		w.consume()
		return w.missing(false)
	})
	w.empty()
	w.delete("maps", `{"user_id":"u","map_id":"again"}`)
	w.put("maps", `{"user_id":"u","map_id":"again","entityType":"map"}`)
	localtest.Await(t, "what is deleted takes the rest along", func() string {
		f.round()
		w.consume()
		return w.missing(true)
	})
	f.end()
	w.check()
	if w.kills != 12 {
		t.Errorf("it was killed %d times, want 12", w.kills)
	}
	letters := w.dead()
	for _, letter := range letters {
		e, err := deadletter.Parse([]byte(letter))
		if err != nil || e.Route != "only numbers" {
			t.Errorf("dead letter of route %q: %v, %v", e.Route, e.Last.Error, err)
		}
	}
	if len(letters) == 0 {
		t.Error("the record that fails for good was not parked")
	}
	f.checkMetrics()
}

// fill writes the first items.
func (w *world) fill() {
	for n := 1; n <= 4; n++ {
		for order := range 5 {
			w.put("orders", fmt.Sprintf(`{"id":"o%d","entityType":"order","n":%d}`, order, n))
		}
	}
	w.put("orders", `{"id":"bad","entityType":"order","n":"x"}`)
	w.put("users", `{"user_id":"u","entityType":"user"}`)
	for _, m := range []string{"many", "few", "again"} {
		w.put("maps", `{"user_id":"u","map_id":"`+m+`","entityType":"map"}`)
	}
	for m, points := range map[string]int{"many": 30, "few": 5, "again": 4, "nowhere": 3} {
		for p := range points {
			w.put("points", fmt.Sprintf(`{"map_id":%q,"point_id":"p%d","user_id":"u","entityType":"point"}`, m, p))
		}
	}
	for i, step := range []string{"phone", "mail", "letter"} {
		w.put("calls", fmt.Sprintf(`{"PK":"contact-ada","SK":%q,"entityType":"step","order":%d,"wait":%d}`, step, i+1, i%2))
	}
	for id, contact := range map[string]string{"climbs": "ada", "answered": "ada", "stepless": "bob"} {
		w.put("calls", fmt.Sprintf(`{"PK":%q,"SK":"call","entityType":"call","contact":%q,"started":"2026-01-01T00:00:00Z","status":"open"}`, id, contact))
	}
}

// empty deletes the parents, and an order.
func (w *world) empty() {
	for _, m := range []string{"many", "few"} {
		w.delete("maps", `{"user_id":"u","map_id":"`+m+`"}`)
	}
	w.delete("orders", `{"id":"o0"}`)
}

// missing describes an effect that is still missing after fill, or after empty.
func (w *world) missing(emptied bool) string {
	var all []string
	is := func(what, got, want string) {
		if got != want {
			all = append(all, fmt.Sprintf("%s: %s, want %s", what, got, want))
		}
	}
	user, many, few, first := "39", "30", "5", "4"
	if emptied {
		user, many, few, first = "4", "", "", ""
	}
	is("user", w.get("users", `{"user_id":"u"}`, "points"), user)
	is("map many", w.get("maps", `{"user_id":"u","map_id":"many"}`, "points"), many)
	is("map few", w.get("maps", `{"user_id":"u","map_id":"few"}`, "points"), few)
	is("points of again", fmt.Sprint(w.points("again")), "4")
	is("orphans", fmt.Sprint(w.points("nowhere")), "0")
	if emptied {
		is("points of many", fmt.Sprint(w.points("many")), "0")
		is("points of few", fmt.Sprint(w.points("few")), "0")
	}
	for order := range 5 {
		id, want := fmt.Sprint("o", order), "4"
		if order == 0 {
			want = first
		}
		var doc struct {
			Source struct{ N json.Number } `json:"_source"`
		}
		if err := json.Unmarshal([]byte(w.http("GET", w.search+"/_doc/"+id, "")), &doc); err != nil {
			w.t.Fatal(err)
		}
		is("document "+id, doc.Source.N.String(), want)
	}
	for order, n := range map[string]int{"o0": 4, "o1": 4, "o2": 4, "o3": 4, "o4": 4, "bad": 1} {
		if emptied && order == "o0" {
			n++
		}
		is("changes of "+order, fmt.Sprint(len(w.changes[order])), fmt.Sprint(n))
	}
	for id, status := range map[string]string{"climbs": "expired", "answered": "answered", "stepless": "failed"} {
		is("call "+id, w.get("calls", `{"PK":"`+id+`","SK":"call"}`, "status"), status)
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// check checks the sent messages: all of them, in order, once, and no others.
func (w *world) check() {
	w.t.Helper()
	for order, got := range w.changes {
		var want []string
		for n, event := range []string{"INSERT", "MODIFY", "MODIFY", "MODIFY"} {
			want = append(want, fmt.Sprintf(`{"id":%q,"event":%q,"n":%d}`, order, event, n+1))
		}
		switch order {
		case "o0":
			want = append(want, `{"id":"o0","event":"REMOVE","n":4}`)
		case "bad":
			want = []string{`{"id":"bad","event":"INSERT","n":"x"}`}
		}
		if !slices.Equal(got, want) {
			w.t.Errorf("of %s was sent\n%s\nwant\n%s", order, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	var keys []string
	for key := range w.steps {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	if got, want := strings.Join(keys, " "), "answered#0 climbs#0 climbs#1 climbs#2 climbs#expire"; got != want {
		w.t.Errorf("messages of escalations: %s, want %s", got, want)
	}
	for _, two := range w.again {
		w.t.Errorf("one key, two messages: %s", two)
	}
	if reason := w.get("calls", `{"PK":"stepless","SK":"call"}`, "why"); reason != "no_steps" {
		w.t.Errorf("the call without a step failed for %q", reason)
	}
}

// checkMetrics compares the written metrics with the service's counts.
func (f *triggered) checkMetrics() {
	t := f.w.t
	t.Helper()
	sum := map[string]float64{}
	for line := range strings.Lines(f.told) {
		var doc map[string]any
		if err := json.Unmarshal([]byte(line), &doc); err != nil || doc["_aws"] == nil {
			t.Errorf("a line that is no metric: %s: %v", line, err)
			continue
		}
		of := "invocation"
		for _, dimension := range []string{"Route", "Sink"} {
			if v, ok := doc[dimension].(string); ok {
				of = v
			}
		}
		for name, v := range doc {
			if n, ok := v.(float64); ok {
				sum[of+" "+name] += n
			}
		}
	}
	for name, want := range map[string]int{
		"invocation Invocations": f.invocations, "invocation Records": f.records, "invocation Settled": f.settled, "invocation InvocationErrors": 0,
	} {
		if got := int(sum[name]); got != want {
			t.Errorf("metric %s: %d, want %d", name, got, want)
		}
	}
	for _, route := range []string{"changes", "search", "first step", "next step", "count points", "delete points", "cascade.delete"} {
		if sum[route+" Done"] == 0 {
			t.Errorf("no metric of what route %q has done", route)
		}
	}
	if p, of := sum["only numbers Parked"], sum["invocation Parked"]; p == 0 || p != of {
		t.Errorf("parked: %v by route, %v of all", p, of)
	}
}
