//go:build race

package poller

// The race detector itself fails, now and then, when hundreds of goroutines
// end together ("ThreadSanitizer: CHECK failed: tsan_rtl.cpp").
const (
	crowdAtOnce = 100
	manyShards  = 250
)
