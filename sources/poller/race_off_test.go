//go:build !race

package poller

import "testing"

// crowded runs a test of hundreds of shards in a bubble.
func crowded(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	bubble(t, f)
}
