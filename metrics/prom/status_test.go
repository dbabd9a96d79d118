package prom

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/sources/poller"
)

func TestStatus(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	names := []string{"sluice_ready", "sluice_held_lanes", "sluice_held_lanes_oldest_seconds", "sluice_dead_letters"}
	expectSeries(t, reg, "", names...) // nobody to ask
	m.Flow(two())
	m.Flow(two()) // of another source
	ready := false
	var held []flow.Held
	m.Ask(Status{
		Ready: func() bool { return ready },
		Held:  func() []flow.Held { return held },
		DeadLetters: func() []deadletter.Count {
			return []deadletter.Count{
				{Route: "first", Table: "a", Kind: "record", N: 2}, {Route: "first", Table: "b", Kind: "record", N: 3},
				{Route: "gone", Table: "b", Kind: "record", N: 1}, {Table: "b", Kind: "gap", N: 1},
			}
		},
	})
	held = []flow.Held{{Route: "second", Age: time.Minute}, {Route: "second", Age: time.Second}, {Age: time.Hour}}
	expectSeries(t, reg, `
# HELP sluice_dead_letters Dead letters that are there now: records that failed for good, and gaps. The route is empty where an entry is for all. Counted twice a minute at most.
# TYPE sluice_dead_letters gauge
sluice_dead_letters{kind="gap",route=""} 1
sluice_dead_letters{kind="record",route="first"} 5
sluice_dead_letters{kind="record",route="gone"} 1
sluice_dead_letters{kind="record",route="second"} 0
# HELP sluice_held_lanes Items of streams whose changes wait because one of them failed and will be tried again, or because its handler does not return. Others go on.
# TYPE sluice_held_lanes gauge
sluice_held_lanes{route=""} 1
sluice_held_lanes{route="first"} 0
sluice_held_lanes{route="second"} 2
# HELP sluice_held_lanes_oldest_seconds How long the first of them has been waiting; 0 where none is.
# TYPE sluice_held_lanes_oldest_seconds gauge
sluice_held_lanes_oldest_seconds{route=""} 3600
sluice_held_lanes_oldest_seconds{route="first"} 0
sluice_held_lanes_oldest_seconds{route="second"} 60
# HELP sluice_ready 1 while /readyz says ok. It says why when it does not.
# TYPE sluice_ready gauge
sluice_ready 0
`, names...)
	ready, held = true, nil
	expectSeries(t, reg, `
# HELP sluice_held_lanes Items of streams whose changes wait because one of them failed and will be tried again, or because its handler does not return. Others go on.
# TYPE sluice_held_lanes gauge
sluice_held_lanes{route="first"} 0
sluice_held_lanes{route="second"} 0
# HELP sluice_ready 1 while /readyz says ok. It says why when it does not.
# TYPE sluice_ready gauge
sluice_ready 1
`, "sluice_ready", "sluice_held_lanes")
}

// A breaker is open when a hook says so, or whoever is asked.
func TestBreakerOfWhatHasNoHook(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	rs := two()
	hooks := m.Flow(rs)
	var outages []flow.Outage
	m.Ask(Status{Outages: func() []flow.Outage { return outages }})
	expect := func(first, second string) {
		t.Helper()
		expectSeries(t, reg, `
# HELP sluice_breaker_open 1 while a route fails for every record, so that only probes go through, or for every message of a queue.
# TYPE sluice_breaker_open gauge
sluice_breaker_open{route="first"} `+first+`
sluice_breaker_open{route="second"} `+second+`
`, "sluice_breaker_open")
	}
	expect("0", "0")
	outages = []flow.Outage{{Route: "second"}, {Route: "second"}} // of two queues
	expect("0", "1")
	hooks.Breaker(rs.Routes()[0], true, nil)
	hooks.Breaker(rs.Routes()[1], false, nil)
	expect("1", "1")
	outages = nil
	hooks.Breaker(rs.Routes()[0], false, nil)
	expect("0", "0")
}

func TestLineage(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	h := New(reg).Poller()
	h.Lineage(poller.Lineage{Table: "a", StreamARN: "old", Reading: 1, Waiting: 2, Finished: 3, Halted: 4})
	h.Lineage(poller.Lineage{Table: "a", StreamARN: "new", Reading: 10, Waiting: 20, Finished: 30, Halted: 40})
	h.Lineage(poller.Lineage{Table: "a", StreamARN: "old", Finished: 6})
	const head = `
# HELP sluice_stream_shards Shards of the streams, as this process knows them: reading, waiting (for a parent, another owner, or another try), finished, halted (at a gap).
# TYPE sluice_stream_shards gauge
`
	expectSeries(t, reg, head+`
sluice_stream_shards{state="finished",table="a"} 36
sluice_stream_shards{state="halted",table="a"} 40
sluice_stream_shards{state="reading",table="a"} 10
sluice_stream_shards{state="waiting",table="a"} 20
`, "sluice_stream_shards")
	h.Lineage(poller.Lineage{Table: "a", StreamARN: "old"}) // not read any more
	expectSeries(t, reg, head+`
sluice_stream_shards{state="finished",table="a"} 30
sluice_stream_shards{state="halted",table="a"} 40
sluice_stream_shards{state="reading",table="a"} 10
sluice_stream_shards{state="waiting",table="a"} 20
`, "sluice_stream_shards")
}

func TestTimeToLoss(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	h := New(reg).Poller()
	for id, lag := range map[string]time.Duration{"1": time.Hour, "2": 20 * time.Hour, "3": 0} {
		s := poller.Shard{Table: "a", ID: id}
		h.ShardStarted(s, "")
		h.Lag(s, lag)
	}
	late := poller.Shard{Table: "b", ID: "1"}
	h.ShardStarted(late, "")
	h.Lag(late, 30*time.Hour)
	expectSeries(t, reg, `
# HELP sluice_time_to_loss_seconds Time until the stream forgets the oldest record that is not settled, 24 hours after its change, the least of all shards; 86400 where nothing waits.
# TYPE sluice_time_to_loss_seconds gauge
sluice_time_to_loss_seconds{table="a"} 14400
sluice_time_to_loss_seconds{table="b"} 0
`, "sluice_time_to_loss_seconds")
}
