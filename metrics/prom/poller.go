package prom

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/sources/poller"
)

// memory is what the pages of a poller take.
type memory struct {
	pinned, limit int64 // bytes
	waiting       int   // shards
}

type pollerMetrics struct {
	descs
	shards, watermarkAge  *prometheus.Desc
	lineage, toLoss       *prometheus.Desc
	pinned, limit, noRoom *prometheus.Desc // of memory

	hooks poller.Hooks // without Memory

	mu   sync.Mutex
	lags map[poller.Shard]time.Duration // of the shards that are being read
	uses []*memory                      // of each poller
	// known is the shards of each stream, by table and ARN.
	known map[[2]string]poller.Lineage
}

func newPollerMetrics(f factory) *pollerMetrics {
	m := &pollerMetrics{lags: make(map[poller.Shard]time.Duration), known: make(map[[2]string]poller.Lineage)}
	m.hooks = m.newHooks(f)
	m.shards = m.desc("sluice_shards", "Shards being read.", "table")
	m.watermarkAge = m.desc("sluice_watermark_age_seconds", "Age of the oldest unsettled record; else about 0.", "table")
	m.toLoss = m.desc("sluice_time_to_loss_seconds", "Time until the stream forgets the oldest unsettled record; else 86400.", "table")
	m.lineage = m.desc("sluice_stream_shards", "Shards: reading, waiting, finished, halted (at a gap).", "table", "state")
	m.pinned = m.desc("sluice_memory_pinned_bytes", "Memory of pages with unsettled records.")
	m.limit = m.desc("sluice_memory_limit_bytes", "Most memory for pages of records.")
	m.noRoom = m.desc("sluice_memory_waiting_shards", "Shards that wait for memory.")
	return m
}

// Collect reports the shards at the time of the scrape.
func (m *pollerMetrics) Collect(ch chan<- prometheus.Metric) {
	type table struct {
		shards int
		oldest time.Duration
	}
	tables := make(map[string]table)
	streams := make(map[string]poller.Lineage)
	m.mu.Lock()
	for _, l := range m.known {
		sum := streams[l.Table]
		streams[l.Table] = poller.Lineage{
			Reading: sum.Reading + l.Reading, Waiting: sum.Waiting + l.Waiting,
			Finished: sum.Finished + l.Finished, Halted: sum.Halted + l.Halted,
		}
	}
	for s, lag := range m.lags {
		t := tables[s.Table]
		tables[s.Table] = table{t.shards + 1, max(t.oldest, lag)}
	}
	var sum memory // without a poller, no limit
	for _, u := range m.uses {
		sum = memory{sum.pinned + u.pinned, sum.limit + u.limit, sum.waiting + u.waiting}
	}
	m.mu.Unlock()
	gauge := gauges(ch)
	if sum.limit > 0 {
		gauge(m.pinned, float64(sum.pinned))
		gauge(m.limit, float64(sum.limit))
		gauge(m.noRoom, float64(sum.waiting))
	}
	for name, t := range tables {
		gauge(m.shards, float64(t.shards), name)
		gauge(m.watermarkAge, t.oldest.Seconds(), name)
		gauge(m.toLoss, max(0, retention-t.oldest).Seconds(), name)
	}
	for name, l := range streams {
		for state, n := range map[string]int{"reading": l.Reading, "waiting": l.Waiting, "finished": l.Finished, "halted": l.Halted} {
			gauge(m.lineage, float64(n), name, state)
		}
	}
}

// retention is how long a stream keeps its records.
const retention = 24 * time.Hour

// listed handles a Lineage, which may be the last of a stream.
func (m *pollerMetrics) listed(l poller.Lineage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// Its table stays known. Streams do not, because a table may have many.
	stream, table := [2]string{l.Table, l.StreamARN}, [2]string{l.Table}
	if l == (poller.Lineage{Table: l.Table, StreamARN: l.StreamARN}) {
		delete(m.known, stream)
		m.known[table] = poller.Lineage{Table: l.Table}
		return
	}
	m.known[stream] = l
}

func (m *pollerMetrics) begin(s poller.Shard) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lags[s] = 0
}

// lag may come late, when the shard has ended.
func (m *pollerMetrics) lag(s poller.Shard, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.lags[s]; ok {
		m.lags[s] = d
	}
}

func (m *pollerMetrics) forget(s poller.Shard) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.lags, s)
}

// use returns a function that notes the memory of one poller.
func (m *pollerMetrics) use() func(pinned, limit int64, waiting int) {
	u := new(memory)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses = append(m.uses, u)
	return func(pinned, limit int64, waiting int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if *u = (memory{pinned, limit, waiting}); limit == 0 { // it has ended
			m.uses = slices.DeleteFunc(m.uses, func(other *memory) bool { return other == u })
		}
	}
}

// Poller returns hooks for one poller. Call it once per poller of the process.
func (m *Metrics) Poller() poller.Hooks {
	hooks := m.poller.hooks
	hooks.Memory = m.poller.use()
	return hooks
}

func (m *pollerMetrics) newHooks(f factory) poller.Hooks {
	polls := f.counter("sluice_polls_total", "GetRecords calls: with records, empty, or failed.", "table", "outcome")
	records := f.counter("sluice_polled_records_total", "Records read from streams.", "table")
	bytes := f.counter("sluice_polled_bytes_total", "Bytes of GetRecords answers.", "table")
	shardEnds := f.counter("sluice_shard_ends_total", "Shards that ended, by reason.", "table", "end")
	dropped := f.counter("sluice_dropped_records_total", "Records from before a start at LATEST.", "table")
	gaps := f.counter("sluice_gaps_total", "Ranges of records that are lost.", "table")
	replaced := f.counter("sluice_streams_replaced_total", "New streams of a table.", "table")
	failures := f.counter("sluice_call_failures_total", "Failed calls, which are tried again.", "action")
	checkpoints := f.counter("sluice_checkpoints_total", "Writes of positions.", "outcome")
	pollSeconds := f.histogram("sluice_poll_seconds", "Duration of GetRecords calls.", []float64{.002, .01, .05, .2, 1, 5}, "table")
	checkpointSeconds := f.histogram("sluice_checkpoint_seconds", "Duration of writes of positions.", []float64{.001, .005, .02, .1, .5, 2}).WithLabelValues()
	openGaps := f.gauge("sluice_open_gaps", "Gaps that nobody has acknowledged, from before a restart, too.", "table")
	return poller.Hooks{
		Polled: func(c poller.Poll) {
			polls.WithLabelValues(c.Shard.Table, outcome(c.Err, c.Records, "records")).Inc()
			records.WithLabelValues(c.Shard.Table).Add(float64(c.Records))
			bytes.WithLabelValues(c.Shard.Table).Add(float64(c.Bytes))
			pollSeconds.WithLabelValues(c.Shard.Table).Observe(c.Took.Seconds())
		},
		ShardStarted: func(s poller.Shard, _ sluice.Sequence) { m.begin(s) },
		ShardEnded: func(s poller.Shard, end poller.End) {
			m.forget(s)
			shardEnds.WithLabelValues(s.Table, string(end)).Inc()
		},
		Lineage: m.listed,
		Lag:     m.lag,
		Dropped: func(s poller.Shard, n int) { dropped.WithLabelValues(s.Table).Add(float64(n)) },
		Gap: func(g sluice.Gap) {
			gaps.WithLabelValues(g.Table).Inc()
			if g.Next != "" {
				replaced.WithLabelValues(g.Table).Inc()
			}
		},
		OpenGaps: func(table string, gaps int) { openGaps.WithLabelValues(table).Set(float64(gaps)) },
		Failed: func(_ poller.Shard, action string, _ error, _ time.Duration) {
			failures.WithLabelValues(action).Inc()
		},
		Checkpointed: func(_ int, took time.Duration, err error) {
			checkpoints.WithLabelValues(outcome(err, 1, "stored")).Inc()
			checkpointSeconds.Observe(took.Seconds())
		},
	}
}
