// Package commits has the metrics of group commits.
package commits

import (
	"time"

	"github.com/sluicehq/sluice/metrics"
)

var (
	items = metrics.New(metrics.Metric{Name: "sluice_commit_items_total", Help: "Items in commits: committed or failed.", Labels: []string{"sink", "outcome"}})
	sizes = metrics.New(metrics.Metric{Name: "sluice_commit_batch_items", Help: "Items of one commit.", Labels: []string{"sink"},
		Buckets: []float64{1, 2, 5, 10, 25, 100, 500}, CloudWatch: "CommitItems", Dimension: "Sink"})
	failures = metrics.New(metrics.Metric{Labels: []string{"sink"}, CloudWatch: "CommitFailures", Dimension: "Sink"})
	seconds  = metrics.New(metrics.Metric{Name: "sluice_commit_seconds", Help: "Duration of one commit.", Labels: []string{"sink"},
		Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60}, CloudWatch: "CommitDuration", Dimension: "Sink"})
)

// Commits counts the group commits of one sink. A nil one does not.
type Commits struct{ committed, failed, failures, sizes, seconds func(float64) }

// Of returns the Commits of a sink; nil without a meter.
func Of(m metrics.Meter, sink string) *Commits {
	if m == nil {
		return nil
	}
	bind := func(of *metrics.Metric, labels ...string) func(float64) {
		if add := of.Of(m).Bind(labels...); add != nil {
			return add
		}
		return func(float64) {}
	}
	return &Commits{
		committed: bind(items, sink, "committed"), failed: bind(items, sink, "failed"),
		sizes: bind(sizes, sink), failures: bind(failures, sink), seconds: bind(seconds, sink),
	}
}

// Add counts one commit of n items.
func (c *Commits) Add(n, failed int, took time.Duration) {
	if c == nil {
		return
	}
	c.committed(float64(n - failed))
	c.failed(float64(failed))
	c.failures(float64(failed))
	c.sizes(float64(n))
	c.seconds(took.Seconds())
}
