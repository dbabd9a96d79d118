//go:build !race

package poller

// crowdAtOnce is how many shards end at the same moment in a test.
const crowdAtOnce = 400
