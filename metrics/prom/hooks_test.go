package prom

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/sources/poller"
)

func expectSeries(t *testing.T, reg prometheus.Gatherer, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

// samples returns the count of each series of a histogram by its first label.
func samples(t *testing.T, reg prometheus.Gatherer, name string) map[string]uint64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]uint64)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, s := range f.Metric {
			label := ""
			if len(s.Label) > 0 {
				label = s.Label[0].GetValue()
			}
			got[label] = s.GetHistogram().GetSampleCount()
		}
	}
	return got
}

func TestMemoryOfPollers(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	a, b := m.Poller(), m.Poller()
	expectSeries(t, reg, "", "sluice_memory_limit_bytes")
	a.Memory(10, 1000, 1)
	b.Memory(20, 500, 4)
	a.Memory(100, 1000, 2)
	expectSeries(t, reg, `
# HELP sluice_memory_limit_bytes Most memory for pages of records.
# TYPE sluice_memory_limit_bytes gauge
sluice_memory_limit_bytes 1500
# HELP sluice_memory_pinned_bytes Memory of pages with unsettled records.
# TYPE sluice_memory_pinned_bytes gauge
sluice_memory_pinned_bytes 120
# HELP sluice_memory_waiting_shards Shards that wait for memory.
# TYPE sluice_memory_waiting_shards gauge
sluice_memory_waiting_shards 6
`, "sluice_memory_limit_bytes", "sluice_memory_pinned_bytes", "sluice_memory_waiting_shards")
}

func TestPoller(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	h := New(reg).Poller()
	shard := func(table, id string) poller.Shard { return poller.Shard{Table: table, StreamARN: "arn", ID: id} }
	h.Polled(poller.Poll{Shard: shard("a", "1"), Records: 3, Bytes: 300})
	for range 2 {
		h.Polled(poller.Poll{Shard: shard("a", "2")})
	}
	h.Polled(poller.Poll{Shard: shard("b", "1"), Err: errors.New("throttled")})
	h.ShardStarted(shard("a", "1"), "")
	h.ShardStarted(shard("a", "2"), "17")
	h.ShardStarted(shard("b", "1"), "")
	h.Lag(shard("a", "1"), 5*time.Second)
	for _, id := range []string{"2", "3", "4", "5", "6", "7"} { // read in any order
		h.ShardStarted(shard("a", id), "")
		h.Lag(shard("a", id), 2*time.Second)
	}
	h.Dropped(shard("a", "1"), 4)
	h.Gap(sluice.Gap{Table: "b", ShardID: "1"})
	h.Gap(sluice.Gap{Table: "b", ShardID: "2"})
	h.Gap(sluice.Gap{Table: "b", Next: "arn2"})
	h.OpenGaps("b", 2)
	h.Failed(shard("b", "1"), "dynamodb:GetRecords", errors.New("throttled"), time.Second)
	h.Checkpointed(2, time.Millisecond, nil)
	h.Checkpointed(2, time.Millisecond, nil)
	h.Checkpointed(1, time.Millisecond, errors.New("disk full"))
	expectSeries(t, reg, `
# HELP sluice_call_failures_total Failed calls, which are tried again.
# TYPE sluice_call_failures_total counter
sluice_call_failures_total{action="dynamodb:GetRecords"} 1
# HELP sluice_checkpoints_total Writes of positions.
# TYPE sluice_checkpoints_total counter
sluice_checkpoints_total{outcome="failed"} 1
sluice_checkpoints_total{outcome="stored"} 2
# HELP sluice_dropped_records_total Records from before a start at LATEST.
# TYPE sluice_dropped_records_total counter
sluice_dropped_records_total{table="a"} 4
# HELP sluice_gaps_total Ranges of records that are lost.
# TYPE sluice_gaps_total counter
sluice_gaps_total{table="b"} 3
# HELP sluice_open_gaps Gaps that nobody has acknowledged, from before a restart, too.
# TYPE sluice_open_gaps gauge
sluice_open_gaps{table="b"} 2
# HELP sluice_polled_bytes_total Bytes of GetRecords answers.
# TYPE sluice_polled_bytes_total counter
sluice_polled_bytes_total{table="a"} 300
sluice_polled_bytes_total{table="b"} 0
# HELP sluice_polled_records_total Records read from streams.
# TYPE sluice_polled_records_total counter
sluice_polled_records_total{table="a"} 3
sluice_polled_records_total{table="b"} 0
# HELP sluice_polls_total GetRecords calls: with records, empty, or failed.
# TYPE sluice_polls_total counter
sluice_polls_total{outcome="empty",table="a"} 2
sluice_polls_total{outcome="failed",table="b"} 1
sluice_polls_total{outcome="records",table="a"} 1
# HELP sluice_shards Shards being read.
# TYPE sluice_shards gauge
sluice_shards{table="a"} 7
sluice_shards{table="b"} 1
# HELP sluice_streams_replaced_total New streams of a table.
# TYPE sluice_streams_replaced_total counter
sluice_streams_replaced_total{table="b"} 1
# HELP sluice_watermark_age_seconds Age of the oldest unsettled record; else about 0.
# TYPE sluice_watermark_age_seconds gauge
sluice_watermark_age_seconds{table="a"} 5
sluice_watermark_age_seconds{table="b"} 0
`, "sluice_call_failures_total", "sluice_checkpoints_total", "sluice_dropped_records_total", "sluice_gaps_total", "sluice_open_gaps", "sluice_polled_bytes_total",
		"sluice_polled_records_total", "sluice_polls_total", "sluice_shards", "sluice_streams_replaced_total", "sluice_watermark_age_seconds")

	h.ShardEnded(shard("a", "1"), "finished")
	h.ShardEnded(shard("b", "1"), "stopped")
	h.Lag(shard("b", "1"), time.Minute) // late
	expectSeries(t, reg, `
# HELP sluice_shard_ends_total Shards that ended, by reason.
# TYPE sluice_shard_ends_total counter
sluice_shard_ends_total{end="finished",table="a"} 1
sluice_shard_ends_total{end="stopped",table="b"} 1
# HELP sluice_shards Shards being read.
# TYPE sluice_shards gauge
sluice_shards{table="a"} 6
# HELP sluice_watermark_age_seconds Age of the oldest unsettled record; else about 0.
# TYPE sluice_watermark_age_seconds gauge
sluice_watermark_age_seconds{table="a"} 2
`, "sluice_shard_ends_total", "sluice_shards", "sluice_watermark_age_seconds")
	for name, want := range map[string]uint64{"sluice_poll_seconds": 3, "sluice_checkpoint_seconds": 3} {
		if got := samples(t, reg, name); got["a"]+got[""] != want {
			t.Errorf("%s: %v, want %d", name, got, want)
		}
	}
}
