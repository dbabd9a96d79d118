package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/holders"
)

func TestStatusText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		time.Sleep(90 * time.Second)
		a := Table{Table: "a", Open: 30, Reading: 25, LagSeconds: 24, Unsettled: 50, Shards: []Shard{{ID: "other", State: Open}}}
		for i := range 20 {
			a.Shards = append(a.Shards, Shard{ID: fmt.Sprintf("s%02d", 24-i), State: Open, Reading: true, LagSeconds: float64(24 - i), Unsettled: 2, LastPoll: began})
		}
		st := Status{
			Application: "shop", Version: "v1", Started: began, CountedAt: time.Now().Add(-7 * time.Second), Reasons: []string{"one\nmore", "two"}, Worker: "host/1/A", Config: "1a2b3c4d",
			Tables: []Table{a, {Table: "b", Open: 1, Reading: 1, Shards: []Shard{{ID: "x", State: Open, Reading: true, Error: "throttled\nmore"}}}, {Table: "c", Open: 3}},
			Queues: []Queue{{"jobs", 3, 61}}, Backfills: []Backfill{{Table: "a", Settled: 5, Expected: 9}, {Table: "b", Settled: 7, Finished: true}},
			Cascades: []Cascade{{Table: "lines", Parent: "orders/o-1", Deleted: 12000, Seconds: 90}},
			Held:     4, Gaps: 1, Unknown: "other workers are not known: timeout", Reload: &Reload{Outcome: Failed, At: began, Error: "line 1\nroute x: works"},
			Routes: []Route{
				{Route: "well", State: "works", Waiting: 3, Others: []RouteAt{{"h/2/B", holders.RouteReport{State: "outage", Failing: 2, Error: "503"}}, {"h/3/C", holders.RouteReport{State: "works", PerSecond: 4}}}},
				{Route: "r", State: "outage", Since: began, Failing: 3, Waiting: 5, Error: "down\nand out"}, {Route: "s", State: "overloaded", Since: began, Waiting: 1, Limit: 4, Error: "429"},
				{Route: "t", State: "works", Failing: 1, Waiting: 2, Error: "bad"}, {Route: "u", State: "works", Error: "once"},
				{Route: "v", State: "works", Waiting: 2, Throttle: &Throttle{Paused: true, Text: "paused for 1h0m0s"}}, {Route: "w", State: "outage", Since: began, Failing: 3, Error: "down", Throttle: &Throttle{Text: "slowed to 4 calls at a time"}},
			},
			DeadLetters: []deadletter.Count{{Route: "r", Table: "a", Kind: "record", N: 2}, {Table: "b", Kind: "gap", N: 1}},
		}
		var b strings.Builder
		st.Text(&b)
		for _, want := range []string{
			"shop, version v1, running for 1m30s\nworker host/1/A, configuration 1a2b3c4d\nNOT READY\n  one\n    more\n  two\nthe reload at 2000-01-01T00:00:00Z failed, and the old configuration goes on: line 1\n    route x: works\n",
			"held items: 4 (sluice status --held)\nother workers are not known: timeout\n", "dead letters: 3 (counted 7s ago)\n  2 of table a, route r (record)\n  1 of table b, route - (gap)\n",
			"acknowledged: 1\nroute well at worker h/2/B: outage, 2 items failing: 503\nroute r: outage since 2000-01-01T00:00:00Z, 3 items failing, 5 records waiting: down\nroute s: overloaded since 2000-01-01T00:00:00Z, 1 record waiting, 4 calls at a time: 429\n" +
				"route t: 1 item failing, 2 records waiting: bad\nroute u: works, after an error: once\nroute v: paused for 1h0m0s; works, 2 records waiting\nroute w: slowed to 4 calls at a time; outage since 2000-01-01T00:00:00Z, 3 items failing: down\n\n",
			"table a: 25 of 30 open shards, lag 24s, 50 records unsettled\n  s24  lag 24s  2 unsettled  polled 1m30s ago", "  and 5 that lag less\n",
			"table b: 1 shard, lag 0s, 0 records unsettled\n  x  lag 0s  0 unsettled  never polled  throttled\n", "table c: 0 of 3 open shards, lag 0s, 0 records unsettled\n",
			"queue jobs: 3 messages in hand, the oldest for 1m1s\n", "backfill of table a: 5 of about 9 items settled\n", "backfill of table b: finished, 7 items\n", "cascade of orders/o-1: 12\u2009000 rows of table lines deleted in 1m30s\n",
		} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in\n%s", want, &b)
			}
		}
	})
}

func TestRates(t *testing.T) {
	st := Status{Routes: []Route{
		{Route: "search", State: "outage", Failing: 3, Waiting: 12, Last: Point{Done: 60, Failed: 30, Parked: 2, P50: 0.01, P99: 1.5}, Others: []RouteAt{{"b", holders.RouteReport{PerSecond: 7}}}},
		{Route: "mail", State: "works", Throttle: &Throttle{Paused: true}}, {Route: "log", State: "works", Throttle: &Throttle{}},
	}}
	var b strings.Builder
	st.Rates(&b)
	var rows []string
	for line := range strings.Lines(b.String()) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"ROUTE STATE CALLS FAILED PARKED P50 P99 FAILING WAITING",
		"search outage " + rate(7+92.0/30) + " 30 2 " + took(0.01) + " " + took(1.5) + " 3 12",
		"mail paused " + rate(0) + " 0 0 " + took(0) + " " + took(0) + " 0 0", "log slowed " + rate(0) + " 0 0 " + took(0) + " " + took(0) + " 0 0",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("%q\nwant %q", rows, want)
	}
}

func TestHeldText(t *testing.T) {
	h := HeldItems{Held: []holders.Item{
		{Table: "t", Key: "00000000000000ff", AgeSeconds: 60, Stuck: true},
		{Table: "t", Shard: "s1", Sequence: "977119800000398701107540001", Key: "0000000000000001", Route: "r", Attempts: 2, Bytes: 9, Error: "not\tyet\nof all"},
	}}
	want := `TABLE  SHARD  SEQUENCE                     KEY               ROUTE  ATTEMPTS  AGE   BYTES  ERROR
t      -      -                            00000000000000ff  -      0         1m0s  0      its handler does not return
t      s1     977119800000398701107540001  0000000000000001  r      2         0s    9      not yet
`
	text := func() string {
		var b strings.Builder
		h.Text(&b)
		return b.String()
	}
	if got := text(); got != want {
		t.Errorf("%s", got)
	}
	h.Held[1].Worker, h.Unlisted = "h/2/B", []string{"worker h/2/B holds 2 more"}
	if got := text(); !strings.Contains(got, "\nthis one  t      - ") || !strings.Contains(got, "\nh/2/B     t      s1 ") || !strings.HasSuffix(got, "\nworker h/2/B holds 2 more\n") {
		t.Errorf("%s", got)
	}
	if h = (HeldItems{}); text() != "no item is held\n" {
		t.Errorf("%s", text())
	}
}

// The page knows every state of a flow.
func TestStates(t *testing.T) {
	var last int
	for _, state := range []flow.State{flow.Works, flow.Overloaded, flow.Recovering, flow.Partial, flow.Outage} {
		if bad := badness(Route{State: state.String()}); (bad > 0) != (state != flow.Works) || bad < last {
			t.Errorf("%v: %d, after %d", state, bad, last)
		} else {
			last = bad
		}
	}
}
