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
# HELP sluice_dead_letters Dead letters now; gaps have no route.
# TYPE sluice_dead_letters gauge
sluice_dead_letters{kind="gap",route=""} 1
sluice_dead_letters{kind="record",route="first"} 5
sluice_dead_letters{kind="record",route="gone"} 1
sluice_dead_letters{kind="record",route="second"} 0
# HELP sluice_held_lanes Items whose changes wait behind a failure or a stuck handler.
# TYPE sluice_held_lanes gauge
sluice_held_lanes{route=""} 1
sluice_held_lanes{route="first"} 0
sluice_held_lanes{route="second"} 2
# HELP sluice_held_lanes_oldest_seconds Longest wait of a held item.
# TYPE sluice_held_lanes_oldest_seconds gauge
sluice_held_lanes_oldest_seconds{route=""} 3600
sluice_held_lanes_oldest_seconds{route="first"} 0
sluice_held_lanes_oldest_seconds{route="second"} 60
# HELP sluice_ready 1 while /readyz says ok.
# TYPE sluice_ready gauge
sluice_ready 0
`, names...)
	ready, held = true, nil
	expectSeries(t, reg, `
# HELP sluice_held_lanes Items whose changes wait behind a failure or a stuck handler.
# TYPE sluice_held_lanes gauge
sluice_held_lanes{route="first"} 0
sluice_held_lanes{route="second"} 0
# HELP sluice_ready 1 while /readyz says ok.
# TYPE sluice_ready gauge
sluice_ready 1
`, "sluice_ready", "sluice_held_lanes")
}

// Of a route and a queue of one name the worse counts.
func TestStatesOfRoutes(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	m.Flow(two())
	m.Ask(Status{Routes: func() []flow.RouteState {
		return []flow.RouteState{
			{Route: "first", State: flow.Outage, Failing: 7},
			{Route: "second", State: flow.Overloaded, Limit: 4, Throttle: flow.Throttle{Rate: 1}},
			{Route: "first", Throttle: flow.Throttle{Paused: true}, Oldest: time.Now().Add(-25 * time.Hour)},
		}
	}})
	expectSeries(t, reg, `
# HELP sluice_route_concurrency_limit Calls that the route can take; 0 without a limit.
# TYPE sluice_route_concurrency_limit gauge
sluice_route_concurrency_limit{route="first"} 0
sluice_route_concurrency_limit{route="second"} 4
# HELP sluice_route_failing_items Items whose last call failed.
# TYPE sluice_route_failing_items gauge
sluice_route_failing_items{route="first"} 7
sluice_route_failing_items{route="second"} 0
# HELP sluice_route_pause_time_to_loss_seconds Time until the stream forgets the oldest record that waits for a paused or slowed route; else 86400.
# TYPE sluice_route_pause_time_to_loss_seconds gauge
sluice_route_pause_time_to_loss_seconds{route="first"} 0
sluice_route_pause_time_to_loss_seconds{route="second"} 86400
# HELP sluice_route_paused 1 while an operator has paused the route.
# TYPE sluice_route_paused gauge
sluice_route_paused{route="first"} 1
sluice_route_paused{route="second"} 0
# HELP sluice_route_slowed 1 while an operator has slowed the route.
# TYPE sluice_route_slowed gauge
sluice_route_slowed{route="first"} 0
sluice_route_slowed{route="second"} 1
# HELP sluice_route_state 1 for the route's state: works, overloaded, partial outage, recovering, outage.
# TYPE sluice_route_state gauge
sluice_route_state{route="first",state="outage"} 1
sluice_route_state{route="first",state="overloaded"} 0
sluice_route_state{route="first",state="partial outage"} 0
sluice_route_state{route="first",state="recovering"} 0
sluice_route_state{route="first",state="works"} 0
sluice_route_state{route="second",state="outage"} 0
sluice_route_state{route="second",state="overloaded"} 1
sluice_route_state{route="second",state="partial outage"} 0
sluice_route_state{route="second",state="recovering"} 0
sluice_route_state{route="second",state="works"} 0
`, "sluice_route_state", "sluice_route_failing_items", "sluice_route_concurrency_limit", "sluice_route_paused", "sluice_route_slowed", "sluice_route_pause_time_to_loss_seconds")
}

func TestLineage(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	h := New(reg).Poller()
	h.Lineage(poller.Lineage{Table: "a", StreamARN: "old", Reading: 1, Waiting: 2, Finished: 3, Halted: 4})
	h.Lineage(poller.Lineage{Table: "a", StreamARN: "new", Reading: 10, Waiting: 20, Finished: 30, Halted: 40})
	h.Lineage(poller.Lineage{Table: "a", StreamARN: "old", Finished: 6})
	const head = `
# HELP sluice_stream_shards Shards: reading, waiting, finished, halted (at a gap).
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
# HELP sluice_time_to_loss_seconds Time until the stream forgets the oldest unsettled record; else 86400.
# TYPE sluice_time_to_loss_seconds gauge
sluice_time_to_loss_seconds{table="a"} 14400
sluice_time_to_loss_seconds{table="b"} 0
`, "sluice_time_to_loss_seconds")
}
