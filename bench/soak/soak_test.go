//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/config"
)

func TestSeries(t *testing.T) {
	s, err := local.ParseSeries(`sluice_records_total{outcome="done",route="send"} 10
sluice_records_total{outcome="done",route="project"} 7
sluice_records_total{outcome="skipped",route="project"} 2
sluice_records_total{outcome="done",route="count"} 11
sluice_records_total{outcome="parked",route="count"} 1
sluice_records_total{outcome="parked",route="send"} 2
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := handled(s); got != 9 {
		t.Errorf("%d records are handled by every route, want 9", got)
	}
	if got := parked(s); got != 3 {
		t.Errorf("%v records are parked, want 3", got)
	}
}

func TestMemory(t *testing.T) {
	var samples []sample
	for i := range 50 {
		samples = append(samples, sample{at: time.Duration(i) * time.Second, rss: float64(i)},
			sample{at: time.Duration(i) * time.Second, rss: 1000, rest: true})
	}
	for n, want := range map[int]float64{0: 5, 1: 15, 4: 45} {
		if got, err := memory(samples, 50*time.Second, n); err != nil || got != want {
			t.Errorf("fifth %d: %v, %v; want %v", n, got, err, want)
		}
	}
	if got, err := memory(samples[:20], 50*time.Second, 4); err == nil {
		t.Errorf("%v of no samples", got)
	}
}

func TestJudge(t *testing.T) {
	load := func(rss, goroutines float64) (samples []sample) {
		for i := range 50 {
			s := sample{at: time.Duration(i) * time.Second, rss: 40e6, goroutines: 500 + float64(10*i)} // of records in hand: no leak
			if i >= 40 {
				s.rss = rss
			}
			samples = append(samples, s)
		}
		return append(samples, sample{at: 11 * time.Second, rest: true, goroutines: 100}, sample{at: 50 * time.Second, rest: true, goroutines: goroutines})
	}
	for _, tt := range []struct {
		rss, goroutines float64
		want            string
	}{
		{41e6, 101, "[]"},
		{20e6, 50, "[]"},
		{80e6, 100, "[resident memory grew from 40.0 to 80.0 MB]"},
		{40e6, 200, "[goroutines grew from 100 to 200]"},
	} {
		if got := fmt.Sprint(judge(load(tt.rss, tt.goroutines), 50*time.Second)); got != tt.want {
			t.Errorf("%v bytes, %v goroutines: %s, want %s", tt.rss, tt.goroutines, got, tt.want)
		}
	}
	if got := judge(load(40e6, 100)[:50], 50*time.Second); len(got) != 1 || !strings.Contains(got[0].Error(), "rest") {
		t.Errorf("%v without a rest", got)
	}
	if got := judge(nil, time.Second); len(got) == 0 {
		t.Error("no sample at all is in order")
	}
}

func TestPace(t *testing.T) {
	p := &pace{rate: 500}
	if got := p.next(0, 10, 500); got != 550 {
		t.Errorf("%v while the daemon follows, want 550", got)
	}
	if got := p.next(10, 10, 100); got != 550 {
		t.Errorf("%v while the writer does not come that far, want 550", got)
	}
	if got := p.next(11, 10, 200); got != 140 {
		t.Errorf("%v when the lag grows at 200 a second, want 140", got)
	}
	for range 50 {
		p.next(11, 10, 1)
	}
	if p.rate != writers*perCall {
		t.Errorf("%v in the end, want one call of each writer a second", p.rate)
	}
}

// What changes leave behind is what their last ones say, and each has a message
// of its own.
func TestShare(t *testing.T) {
	s := newShare(1)
	if len(s.items) != 500 {
		t.Fatalf("%d items, want 500", len(s.items))
	}
	item := s.items[0]
	seen := make(map[string]int)
	last := int64(0)
	for range 1000 {
		next, event := s.after(item)
		seen[event]++
		switch event {
		case "INSERT":
			// A deletion has the version behind the last.
			if item.exists || !next.exists || next.rev != last+2 {
				t.Fatalf("%s: %+v after %+v", event, next, item)
			}
		case "MODIFY":
			if !item.exists || !next.exists || next.rev != last+1 {
				t.Fatalf("%s: %+v after %+v", event, next, item)
			}
		case "REMOVE":
			if !item.exists || next.exists || next.rev != last || !strings.Contains(next.request(event), "DeleteRequest") {
				t.Fatalf("%s: %+v after %+v", event, next, item)
			}
		}
		item, last = next, next.rev
	}
	if seen["INSERT"] < 20 || seen["REMOVE"] < 20 || seen["MODIFY"] < 500 {
		t.Errorf("events are %v", seen)
	}
}

func TestReadChange(t *testing.T) {
	for body, want := range map[string]string{
		`{"event":"MODIFY","keys":{"pk":"a"},"new":{"pk":"a","rev":3},"old":{"pk":"a","rev":2}}`: "MODIFY a 3",
		`{"event":"REMOVE","keys":{"pk":"a"},"old":{"pk":"a","rev":2}}`:                          "REMOVE a 2",
		`{"event":"REMOVE","keys":{"pk":"a"}}`:                                                   "",
		`{"new":{"pk":"a","rev":3}}`:                                                             "",
		`MODIFY a 3`:                                                                             "",
	} {
		if got, err := readChange(body); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v; want %q", body, got, err, want)
		}
	}
}

// The names in the configuration are those that are written to and looked at.
func TestConfiguration(t *testing.T) {
	c, err := config.Parse("soak.yaml", "", []byte(configuration), func(string) (string, bool) { return "http://127.0.0.1:9200", true })
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, r := range c.Routes {
		named = append(named, r.Name)
	}
	if !slices.Equal(named, routes) || c.Source.Tables[0] != itemsTable || c.Sinks["changes"].SQS.Queue != queueName ||
		c.Routes[1].Project.Index != indexName || c.Routes[2].Count.Markers != markersTable || c.Routes[2].Count.Numbers[0].Table != parentsTable {
		t.Errorf("configuration %+v", c)
	}
}

func TestCompareMessages(t *testing.T) {
	missing, unknown, twice := compareMessages([]string{"a", "b", "c"}, map[string]int{"a": 1, "b": 3, "x": 1})
	if fmt.Sprint(missing, unknown, twice) != "[c] [x] 1" {
		t.Errorf("missing %v, unknown %v, twice %d", missing, unknown, twice)
	}
}

func TestCompareDocuments(t *testing.T) {
	item := thing{id: "a", exists: true, rev: 3, amount: 7, parent: "p"}
	gone := thing{id: "a", rev: 3}
	doc := func(found bool, version int64, source string) document.Doc {
		return document.Doc{Found: found, Version: version, Source: []byte(source)}
	}
	const source = `{"rev":3,"amount":7,"parent":"p"}`
	for _, tt := range []struct {
		item      thing
		doc       document.Doc
		different bool
	}{
		{item, doc(true, 3, source), false},
		{gone, doc(false, 0, ""), false},
		{item, doc(false, 0, ""), true},
		{gone, doc(true, 3, source), true},
		{item, doc(true, 2, source), true},
		{item, doc(true, 3, `{"rev":3,"amount":6,"parent":"p"}`), true},
		{item, doc(true, 3, `{"rev":2,"amount":7,"parent":"p"}`), true},
		{item, doc(true, 3, `{"rev":3,"amount":7,"parent":"q"}`), true},
		{item, doc(true, 3, `no JSON`), true},
	} {
		if got := compareDocuments([]thing{tt.item}, []document.Doc{tt.doc}); len(got) > 0 != tt.different {
			t.Errorf("%+v and %+v: %v", tt.item, tt.doc, got)
		}
	}
}

func TestCompareNumbers(t *testing.T) {
	all := []thing{{exists: true, amount: 2, parent: "p"}, {exists: true, amount: 3, parent: "p"}, {exists: false, amount: 9, parent: "q"}}
	for _, tt := range []struct {
		kept map[string]numbers
		want int
	}{
		{map[string]numbers{"p": {2, 5}, "q": {}}, 0},
		{map[string]numbers{"p": {2, 4}, "q": {}}, 1},
		{map[string]numbers{"p": {1, 5}, "q": {}}, 1},
		{map[string]numbers{"p": {2, 5}, "q": {1, 9}}, 1},
	} {
		if got := compareNumbers(all, tt.kept); len(got) != tt.want {
			t.Errorf("%v: %v", tt.kept, got)
		}
	}
}

func TestValidate(t *testing.T) {
	if err := validate(time.Minute); err != nil {
		t.Error(err)
	}
	if err := validate(9 * time.Second); err == nil || !strings.Contains(err.Error(), "-duration") {
		t.Error(err)
	}
}
