//go:build !race

package poller

// How many shards a test has: those that end at the same moment, and those that
// are many.
const (
	crowdAtOnce = 400
	manyShards  = 1000
)
